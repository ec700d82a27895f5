// What is checked of a question before it is sent. Nothing here needs Node, gRPC or protobuf.

import { checkCosts } from "./budget.js";
import { MistakeError } from "./errors.js";
import { isPolicy, isTimeout, LONGEST_TIMEOUT_MS, type Cost, type Policy, type Question } from "./limiter.js";

/** The largest message that a server accepts by default. */
const LARGEST_MESSAGE = 65_536;

/** What holds for questions that do not say otherwise. */
export interface Defaults {
  readonly onFailure: Policy;
  readonly timeoutMs: number;
  readonly strategy: string | undefined;
}

/** What is sent, and how. @internal */
export interface Checked {
  /** What is not set is undefined, which neither JSON nor protobuf writes. */
  readonly fields: { [Name in Exclude<keyof Question, "costs" | "timeoutMs" | "onFailure" | "signal">]: Question[Name] | undefined } & {
    resource: string;
    costs: Record<string, Cost> | undefined;
  };
  readonly timeoutMs: number;
  readonly policy: Policy;
}

/** Checks a question. Throws MistakeError. @internal */
export function checkQuestion(question: Question, defaults: Defaults): Checked {
  const { timeoutMs = defaults.timeoutMs, onFailure = defaults.onFailure } = question;
  if (!isTimeout(timeoutMs)) {
    refuse("timeoutMs", timeoutMs, `a number above 0 and at most ${String(LONGEST_TIMEOUT_MS)}`);
  }
  if (!isPolicy(onFailure)) refuse("onFailure", onFailure, '"allow", "deny" or "error"');
  const { resource, consumer, cost, costs, strategy = defaults.strategy, attributes, peek, atMost, id, headers } = question;
  checkTexts({ resource, consumer, strategy, id }, attributes);
  if (cost !== undefined && !(Number.isSafeInteger(cost) && cost >= 0)) {
    refuse("cost", cost, "a whole number from 0 to 2^53 - 1");
  }
  const fields = { resource, consumer, strategy, cost, costs: checkCosts(costs), attributes, peek, atMost, id, headers };
  return { fields, timeoutMs, policy: onFailure };
}

/** Throws MistakeError if a message is above the bound of the server. @internal */
export function checkLength(bytes: number): void {
  if (bytes <= LARGEST_MESSAGE) return;
  const text = `the question has ${String(bytes)} bytes, the bound is ${String(LARGEST_MESSAGE)}`;
  throw new MistakeError("OUT_OF_RANGE", `${text}: shorten its attributes`);
}

/** Throws MistakeError if a field or an attribute is no text. `resource` is required. @internal */
export function checkTexts(fields: Record<string, unknown>, attributes: Record<string, unknown> | undefined): void {
  for (const [field, text] of Object.entries({ ...attributes, ...fields })) {
    if (typeof text !== "string" && (text !== undefined || field === "resource")) refuse(field, text, "a text");
  }
}

/** Throws the MistakeError of a field. @internal */
export function refuse(field: string, value: unknown, wanted: string): never {
  throw new MistakeError("INVALID_ARGUMENT", `${field}: ${String(value)} is not ${wanted}`, field);
}
