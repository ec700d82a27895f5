// Middleware for Express, and for everything else that calls middleware with (request, response, next).

import type { IncomingMessage, ServerResponse } from "node:http";

import type { Decision } from "./decision.js";
import type { Limiter } from "./limiter.js";
import { checkOptions, isPreflight, judge, type MiddlewareOptions } from "./middleware.js";
import { deny, setHeaders, watchCaller } from "./node_request.js";

/** Options of the middleware for Express. */
export interface ExpressOptions<Request extends IncomingMessage, Response extends ServerResponse>
  extends MiddlewareOptions<Request> {
  /** Answers a request that is denied. Without a decision, the consumer is missing. */
  onDenied?: (decision: Decision | undefined, request: Request, response: Response, next: Next) => unknown;
}

type Next = (error?: unknown) => void;

/** Returns a middleware that asks Weir about each request, except preflights. */
export function weirExpress<
  Request extends IncomingMessage = IncomingMessage,
  Response extends ServerResponse = ServerResponse,
>(client: Limiter, options: ExpressOptions<Request, Response>): (request: Request, response: Response, next: Next) => void {
  checkOptions(client, options);
  const handle = async (request: Request, response: Response, next: Next): Promise<void> => {
    if (isPreflight(request.method, (name) => request.headers[name])) {
      next();
      return;
    }
    const { signal, stop } = watchCaller(response);
    let pass = false;
    try {
      const verdict = await judge(client, options, request, signal);
      if (verdict.kind === "pass") {
        setHeaders(response, verdict.headers);
        pass = true;
      } else if (verdict.kind === "deny" && options.onDenied !== undefined) {
        setHeaders(response, verdict.answer.headers);
        await options.onDenied(verdict.decision, request, response, next);
      } else if (verdict.kind === "deny") {
        deny(response, verdict.answer);
      }
    } catch (error) {
      next(error);
    } finally {
      stop();
    }
    // Outside of the try: what later middleware throws is not the limiter's error.
    if (pass) next();
  };
  return (request, response, next) => void handle(request, response, next);
}
