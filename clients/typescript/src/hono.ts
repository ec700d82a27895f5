// Middleware for Hono, on any runtime.

import type { Context, Env, MiddlewareHandler } from "hono";

import type { Decision } from "./decision.js";
import { refusal, withHeaders } from "./fetch_answer.js";
import type { Limiter } from "./limiter.js";
import { checkOptions, isPreflight, judge, type MiddlewareOptions } from "./middleware.js";

/** Options of the middleware for Hono. */
export interface HonoOptions<E extends Env = Env> extends MiddlewareOptions<Context<E>> {
  /** Answers a request that is denied. Without a decision, the consumer is missing. */
  onDenied?: (decision: Decision | undefined, context: Context<E>) => Response | Promise<Response>;
}

/** Returns a middleware that asks Weir about each request, except preflights and WebSockets of @hono/node-ws. */
export function weirHono<E extends Env = Env>(client: Limiter, options: HonoOptions<E>): MiddlewareHandler<E> {
  checkOptions(client, options);
  const { onDenied } = options;
  return async (context, next) => {
    const { raw } = context.req;
    if (isWebSocket(context) || isPreflight(raw.method, (name) => raw.headers.get(name))) {
      await next();
      return undefined;
    }
    const verdict = await judge(client, options, context, raw.signal);
    if (verdict.kind !== "pass") {
      return refusal(verdict, onDenied && ((decision) => onDenied(decision, context)));
    }
    await next();
    const answer = withHeaders(context.res, verdict.headers);
    if (answer !== context.res) context.res = answer;
    return undefined;
  };
}

// The upgrade handler of @hono/node-ws has no response. The header `Upgrade` is no proof: any caller can send it.
function isWebSocket(context: { env: unknown }): boolean {
  const env = context.env as { incoming?: unknown; outgoing?: unknown } | undefined;
  return env?.incoming !== undefined && env.outgoing === undefined;
}
