// Answers of the fetch standard.

import type { Decision } from "./decision.js";
import type { Verdict } from "./middleware.js";

type OnDenied = (decision: Decision | undefined) => Response | Promise<Response>;

/** Returns the answer to a request that does not pass. @internal */
export async function refusal(verdict: Exclude<Verdict, { kind: "pass" }>, onDenied: OnDenied | undefined): Promise<Response> {
  // Nobody reads this answer; 499 is what proxies log for a caller that has left.
  if (verdict.kind === "left") return new Response(null, { status: 499 });
  const { status, headers, text } = verdict.answer;
  if (onDenied !== undefined) return withHeaders(await onDenied(verdict.decision), headers);
  return new Response(`${text}\n`, { status, headers: { ...headers, "Content-Type": "text/plain; charset=utf-8" } });
}

/** Adds headers to a response, also to one whose headers cannot be changed. @internal */
export function withHeaders(response: Response, headers: Record<string, string>): Response {
  const entries = Object.entries(headers);
  // A response with status 101 belongs to the runtime: it cannot be made again.
  if (entries.length === 0 || response.status === 101) return response;
  try {
    for (const [name, value] of entries) response.headers.set(name, value);
    return response;
  } catch {
    // Responses of fetch() have headers that cannot be changed.
    const copy = new Response(response.body, response);
    for (const [name, value] of entries) copy.headers.set(name, value);
    return copy;
  }
}
