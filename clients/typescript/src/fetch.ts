// Limits for handlers of the fetch standard: (Request) => Response.

import type { Decision } from "./decision.js";
import { ConfigurationError } from "./errors.js";
import { refusal, withHeaders } from "./fetch_answer.js";
import type { Limiter } from "./limiter.js";
import { checkOptions, isPreflight, judge, type MiddlewareOptions } from "./middleware.js";

/** Options of `limited`. */
export interface FetchOptions extends MiddlewareOptions<Request> {
  /** A client, or a fake. */
  client: Limiter;
  /** Answers a request that is denied. Without a decision, the consumer is missing. */
  onDenied?: (decision: Decision | undefined, request: Request) => Response | Promise<Response>;
}

/** Returns the handler behind a limit. What the runtime passes besides the request is handed on. */
export function limited<Rest extends unknown[]>(
  handler: (request: Request, ...rest: Rest) => Response | Promise<Response>,
  options: FetchOptions,
): (request: Request, ...rest: Rest) => Promise<Response> {
  if (typeof (handler as unknown) !== "function") throw new ConfigurationError("handler: required, a function");
  checkOptions(options.client, options);
  const { client, onDenied } = options;
  return async (request, ...rest) => {
    if (isPreflight(request.method, (name) => request.headers.get(name))) return handler(request, ...rest);
    const verdict = await judge(client, options, request, request.signal);
    if (verdict.kind !== "pass") {
      return refusal(verdict, onDenied && ((decision) => onDenied(decision, request)));
    }
    return withHeaders(await handler(request, ...rest), verdict.headers);
  };
}
