// What middleware and application code need of a client: questions in, decisions out. Nothing here needs Node or gRPC.

import type { Decision } from "./decision.js";

/** What an outage answers: `"error"` throws an OutageError. */
export type Policy = "allow" | "deny" | "error";

/** A named cost of a call: its units, and the least part of them that is still of use. */
export interface Cost {
  cost: number;
  /** Grant what fits, but not less than this. If not set: all of the cost, or the call is denied. */
  atLeast?: number;
}

/** Costs by the names that the configuration gives them (`cost: NAME`). */
export type Costs = Record<string, number | Cost>;

/** A question: may this consumer use this resource now? */
export interface Question {
  /** The resource that is used. 1 to 512 bytes. */
  resource: string;
  /** Who uses it. At most 512 bytes. */
  consumer?: string;
  /** How much the call takes from every limit. 1 if not set. 0 asks without taking anything. */
  cost?: number;
  /** Costs by name, of limits with `cost: NAME`: each name of the strategy, 0 if none of it is used. */
  costs?: Costs;
  /** A configured strategy. If not set: that of the client, or the one that the configuration gives the resource. */
  strategy?: string;
  /** Further facts about the call, such as a region: at most 16, of at most 512 bytes each. */
  attributes?: Record<string, string>;
  /** Answer whether the cost would pass now, and charge nothing. */
  peek?: boolean;
  /** Grant as much of the cost as fits. */
  atMost?: boolean;
  /** The id of the call: repeated within 60 s it is answered alike and charges nothing. Never take it from a request. */
  id?: string;
  /** Whether the decision has headers for an HTTP answer. */
  headers?: boolean;
  /** The time for the decision, connecting included. That of the client if not set. */
  timeoutMs?: number;
  /** What an outage answers. That of the client if not set. */
  onFailure?: Policy;
  /** Cancels the call: the promise is rejected with the reason of the signal, and no policy is asked. */
  signal?: AbortSignal;
}

/** What answers questions: a client, or a fake. */
export interface Limiter {
  /** What an outage answers where a question does not say. */
  readonly onFailure: Policy;
  /** Asks whether a call may go ahead. A denial is a value; a mistake is thrown. */
  allow(question: Question): Promise<Decision>;
  /** Ends the client. Calls that are in flight have this time to end. */
  close(timeoutMs?: number): Promise<void>;
}

/** The longest timeout of a decision. Timers of JavaScript have 31 bits, and gRPC's own deadline is later. */
export const LONGEST_TIMEOUT_MS = 3_600_000;

/** Whether a value is a policy. */
export function isPolicy(value: unknown): value is Policy {
  return value === "allow" || value === "deny" || value === "error";
}

/** Whether a value is a timeout. */
export function isTimeout(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= LONGEST_TIMEOUT_MS;
}
