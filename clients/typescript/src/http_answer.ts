// The HTTP answer to a decision, by the table of docs/http.md.

import type { DecisionFields, Reason } from "./decision.js";

/** The status and the headers of an HTTP answer. */
export interface Http {
  /** The status of a denial. `undefined`: the call is allowed. */
  status?: number;
  /** The headers, also of an allowed call. */
  headers: Record<string, string>;
}

const STATUS: Partial<Record<Reason, number>> = {
  never: 403,
  deny_list: 403,
  store_failure: 503,
  policy: 503,
};

/** Returns the HTTP answer to a decision. @internal */
export function httpAnswer(decision: DecisionFields): Http {
  const headers = { ...decision.headers };
  if (decision.allowed) return { headers };
  if (decision.retryAfterMs !== undefined && !hasRetryAfter(headers)) {
    headers["Retry-After"] = String(Math.max(1, Math.ceil(decision.retryAfterMs / 1000)));
  }
  return { status: STATUS[decision.reason] ?? 429, headers };
}

function hasRetryAfter(headers: Record<string, string>): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "retry-after");
}
