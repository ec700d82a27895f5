// One call over HTTP.

import type { Decision } from "./decision.js";
import { OutageError } from "./errors.js";
import { failureOf, isJson } from "./http_failure.js";
import { decisionFromJson } from "./json_decision.js";
import { timed } from "./timed.js";

/** A call. @internal */
export interface Request {
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly headers: Record<string, string> | Promise<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Asks. Rejects with OutageError, MistakeError, or the reason of the signal. @internal */
export function callHttp({ url, fetch, headers, body, timeoutMs, signal }: Request): Promise<Decision> {
  return timed<Decision>(timeoutMs, signal, ({ resolve, reject, ended }) => {
    const controller = new AbortController();
    async function ask(): Promise<Decision> {
      const sent = await headers;
      if (ended()) throw new OutageError("CANCELLED", "the call has ended");
      return decisionOf(await send(fetch, url, { method: "POST", headers: sent, body, redirect: "manual", signal: controller.signal }));
    }
    ask().then(resolve, reject);
    return () => { controller.abort(); };
  });
}

async function send(fetch: Request["fetch"], url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw new OutageError("UNAVAILABLE", "the request failed", error);
  }
}

async function decisionOf(response: Response): Promise<Decision> {
  if (response.status !== 200) throw await failureOf(response);
  const json = isJson(response) ? await textOf(response) : undefined;
  const decision = json === undefined ? undefined : decisionFromJson(json);
  if (decision !== undefined) return decision;
  const type = response.headers.get("content-type") ?? "no content type";
  throw new OutageError("UNKNOWN", `HTTP 200 without a decision (${type}): is baseUrl that of Weir's HTTP listener?`);
}

async function textOf(response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw new OutageError("UNAVAILABLE", "the answer was cut", error);
  }
}
