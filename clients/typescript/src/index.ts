// The client of Weir for Node, over gRPC.

export { clientAddress, type AddressOptions } from "./address.js";
export { Client } from "./client.js";
export type { Code, MistakeCode, OutageCode } from "./codes.js";
export type { Decision, LimitStatus, Reason } from "./decision.js";
export {
  BudgetRefusedError,
  ClosedError,
  ConfigurationError,
  LeaseLostError,
  LeaseRefusedError,
  MistakeError,
  OutageError,
  WeirError,
} from "./errors.js";
export type { Http } from "./http_answer.js";
export type { Lease, LeaseQuestion, WorkOutcome } from "./lease.js";
export type { Cost, Costs, Limiter, Policy, Question } from "./limiter.js";
export type { Meter, MeterQuestion, Use } from "./meter.js";
export type { Options } from "./options.js";
export type { Tls } from "./tls.js";
