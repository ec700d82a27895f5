// Decisions: what Weir answered, or what the policy answered in its place.

import type { OutageError } from "./errors.js";
import { httpAnswer, type Http } from "./http_answer.js";

/** Why a call is allowed or denied. `"policy"`: no decision could be had. `"unknown"`: a reason of a newer server. */
export type Reason =
  | "ok"
  | "limited"
  | "never"
  | "deny_list"
  | "allow_list"
  | "store_failure"
  | "full"
  | "banned"
  | "policy"
  | "unknown";

/** The answer of one limit of the strategy. */
export interface LimitStatus {
  /** The name of the limit. */
  readonly name: string;
  /** Whether this limit would let the call pass. */
  readonly allowed: boolean;
  /** The largest cost that could ever pass this limit. */
  readonly limit: number;
  /** The largest cost that would pass this limit now. */
  readonly remaining: number;
  /** The shortest wait until this limit lets the call pass, if waiting helps. */
  readonly retryAfterMs?: number;
  /** The time until this limit is full again. */
  readonly resetAfterMs?: number;
  /** Why this limit denies: `"count"`, `"min_gap"` or `"never"`. */
  readonly cause?: string;
  /** The units that were asked of this limit, if the strategy has costs by name. What is 0 is not set. */
  readonly cost?: number;
  /** The units that it granted. */
  readonly granted?: number;
  /** The units of it that open holds have, after this decision. */
  readonly held?: number;
  /** Whether use and holds are at or above its `near_limit`. */
  readonly nearLimit?: boolean;
  /** Whether this call took the use over it. */
  readonly crossedNearLimit?: boolean;
}

/** One decision. What is not known is `undefined`, never 0. */
export interface Decision {
  /** Whether the call may go ahead. */
  readonly allowed: boolean;
  /** Who decided: a server of Weir, or the policy of the client (`onFailure`). */
  readonly source: "weir" | "policy";
  /** Whether a failure policy answered: that of the client, or that of the server. */
  readonly degraded: boolean;
  /** The reason of the decision. */
  readonly reason: Reason;
  /** The largest cost that could ever pass: the smallest over all limits. */
  readonly limit?: number;
  /** The largest cost that would pass now, after this decision. */
  readonly remaining?: number;
  /** The shortest wait after which the same call would pass, if waiting helps and the wait is known. */
  readonly retryAfterMs?: number;
  /** The time until all limits are full again. */
  readonly resetAfterMs?: number;
  /** How long to hold the call before it starts, if the strategy paces its calls. */
  readonly waitMs?: number;
  /** How long what is granted is held, if the question has a hold. */
  readonly heldForMs?: number;
  /** How much was charged, if the question has `atMost` or an `id`. */
  readonly granted?: number;
  /** Whether this call was charged, if the question has an `id`. */
  readonly applied?: boolean;
  /** The names of the limits that deny. */
  readonly deniedBy: readonly string[];
  /** Each limit of the strategy, in order. */
  readonly limits: readonly LimitStatus[];
  /** The limit that the headers describe. */
  readonly binding?: string;
  /** A sentence for people, if the call is denied. */
  readonly message?: string;
  /** Headers for an HTTP answer, if the question asks for them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the node decided by itself, with a part of each limit. */
  readonly local: boolean;
  /** Whether nodes count this strategy on their own. */
  readonly approximate: boolean;
  /** The failure that the policy answered. */
  readonly failure?: OutageError;
  /** Returns the status and the headers of an HTTP answer. The status is `undefined` if the call is allowed. */
  http(): Http;
}

/** The fields of a decision without its methods. */
export type DecisionFields = Omit<Decision, "http">;

class WeirDecision {
  http(this: WeirDecision & DecisionFields): Http {
    return httpAnswer(this);
  }
}

/** Returns a decision with these fields. @internal */
export function decisionOf(fields: DecisionFields): Decision {
  return Object.assign(new WeirDecision(), fields);
}

/** Returns the answer of the policy to a failure. @internal */
export function policyDecision(allowed: boolean, failure: OutageError): Decision {
  return decisionOf({
    allowed,
    source: "policy",
    degraded: true,
    reason: "policy",
    deniedBy: [],
    limits: [],
    headers: {},
    local: false,
    approximate: false,
    failure,
    ...(allowed ? {} : { message: "The rate limit cannot be checked" }),
  });
}
