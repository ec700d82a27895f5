// The client of Weir for edge runtimes, over HTTP. Nothing here needs Node, gRPC or protobuf.

export type { Code, MistakeCode, OutageCode } from "./codes.js";
export type { Decision, LimitStatus, Reason } from "./decision.js";
export { ClosedError, ConfigurationError, MistakeError, OutageError, WeirError } from "./errors.js";
export type { Http } from "./http_answer.js";
export { HttpClient } from "./http_client.js";
export type { HttpOptions } from "./http_options.js";
export type { Limiter, Policy, Question } from "./limiter.js";
