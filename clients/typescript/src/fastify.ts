// The plugin for Fastify: a hook `onRequest`, which runs before the body is read.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

import type { Decision } from "./decision.js";
import type { Limiter } from "./limiter.js";
import { checkOptions, isPreflight, judge, type MiddlewareOptions } from "./middleware.js";
import { setHeaders, watchCaller } from "./node_request.js";

/** Options of the plugin for Fastify. */
export interface FastifyOptions extends MiddlewareOptions<FastifyRequest> {
  /** A client, or a fake. */
  client: Limiter;
  /** Answers a request that is denied. Without a decision, the consumer is missing. */
  onDenied?: (decision: Decision | undefined, request: FastifyRequest, reply: FastifyReply) => unknown;
}

/** Asks Weir about each request of the instance and of its children, except preflights and WebSockets. */
export function weirFastify(instance: FastifyInstance, options: FastifyOptions, done: (error?: Error) => void): void {
  try {
    checkOptions(options.client, options);
  } catch (error) {
    done(error as Error);
    return;
  }
  instance.addHook("onRequest", (request, reply) => limit(options, request, reply));
  done();
}

// Without this mark, Fastify would apply the hook to nothing but the plugin itself.
Object.assign(weirFastify, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "weir-ratelimit",
  [Symbol.for("plugin-meta")]: { name: "weir-ratelimit", fastify: "5.x" },
});

async function limit(options: FastifyOptions, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const isPassed = isWebSocket(request) || isPreflight(request.method, (name) => request.headers[name]);
  if (isPassed) return undefined;
  const { signal, stop } = watchCaller(reply.raw);
  const verdict = await judge(options.client, options, request, signal).finally(stop);
  if (verdict.kind === "left") return reply.hijack();
  // On the raw response they stay on answers of handlers that take it over, and on error pages.
  setHeaders(reply.raw, verdict.kind === "deny" ? verdict.answer.headers : verdict.headers);
  if (verdict.kind === "pass") return undefined;
  if (options.onDenied === undefined) {
    void reply.code(verdict.answer.status).type("text/plain; charset=utf-8").send(`${verdict.answer.text}\n`);
  } else {
    await options.onDenied(verdict.decision, request, reply);
  }
  return reply;
}

// The mark of @fastify/websocket. The header `Upgrade` is no proof: any caller can send it.
function isWebSocket(request: FastifyRequest): boolean {
  return (request as { ws?: unknown }).ws === true;
}
