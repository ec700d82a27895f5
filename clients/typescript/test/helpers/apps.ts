// The same small site on each framework, behind the middleware, on a real socket.

import type { AddressInfo } from "node:net";
import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";

import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { streamText } from "hono/streaming";

import { weirExpress } from "../../src/express.js";
import { weirFastify } from "../../src/fastify.js";
import { limited } from "../../src/fetch.js";
import { weirHono } from "../../src/hono.js";
import type { Limiter } from "../../src/index.js";
import type { MiddlewareOptions } from "../../src/middleware.js";

/** Options whose functions see the headers of a request, whatever the framework calls them. */
export type SiteOptions = Omit<MiddlewareOptions<Headers>, "resource"> & { resource?: MiddlewareOptions<Headers>["resource"]; denied?: boolean };

export interface Site extends AsyncDisposable {
  readonly url: string;
  /** The paths whose handlers have run. */
  readonly handled: string[];
}

type Start = (client: Limiter, options: SiteOptions) => Promise<Site>;

export const SITES: Record<string, Start> = { express: onExpress, fastify: onFastify, hono: onHono, fetch: onFetch };

function adapted<R>(options: SiteOptions, headersOf: (request: R) => Headers): MiddlewareOptions<R> {
  const { denied: _, resource = "api", consumer, cost, attributes, skip, ...rest } = options;
  const map = <T>(f: (headers: Headers) => T) => (request: R) => f(headersOf(request));
  return {
    ...rest,
    resource: typeof resource === "function" ? map(resource) : resource,
    consumer: map(consumer),
    ...(cost === undefined ? {} : { cost: typeof cost === "function" ? map(cost) : cost }),
    ...(attributes === undefined ? {} : { attributes: map(attributes) }),
    ...(skip === undefined ? {} : { skip: map(skip) }),
  };
}

function ofNode(request: { headers: IncomingHttpHeaders }): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) if (value !== undefined) headers.set(name, String(value));
  return headers;
}

async function onExpress(client: Limiter, options: SiteOptions): Promise<Site> {
  const handled: string[] = [];
  const app = express();
  // The error page of Express is the one of production.
  app.set("env", "test");
  app.use((request, _response, next) => {
    request.on("data", () => handled.push("read a body"));
    request.pause();
    next();
  });
  app.use(weirExpress(client, {
    ...adapted<IncomingMessage>(options, ofNode),
    ...(options.denied === true ? { onDenied: (decision, _request, response) => response.writeHead(418).end(decision?.reason) } : {}),
  }));
  app.use((request, _response, next) => {
    handled.push(request.path);
    next();
  });
  app.get("/ok", (_, response) => void response.send("hello"));
  app.get("/empty", (_, response) => void response.sendStatus(204));
  app.get("/stream", (_, response) => {
    response.write("one ");
    response.end("two");
  });
  app.get("/boom", () => {
    throw new Error("boom");
  });
  return listening(createServer(app as never), handled);
}

async function onFastify(client: Limiter, options: SiteOptions): Promise<Site> {
  const handled: string[] = [];
  const app = Fastify();
  await app.register(weirFastify, {
    client,
    ...adapted<{ headers: IncomingHttpHeaders }>(options, ofNode),
    ...(options.denied === true ? { onDenied: (decision, _request, reply) => reply.code(418).send(decision?.reason) } : {}),
  });
  app.addHook("preHandler", async (request) => {
    handled.push(request.url);
    return Promise.resolve();
  });
  app.get("/ok", () => "hello");
  app.get("/empty", (_, reply) => reply.code(204).send());
  app.get("/stream", (_, reply) => {
    reply.hijack();
    reply.raw.write("one ");
    reply.raw.end("two");
  });
  app.get("/boom", () => {
    throw new Error("boom");
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { url, handled, [Symbol.asyncDispose]: () => app.close() };
}

async function onHono(client: Limiter, options: SiteOptions): Promise<Site> {
  const handled: string[] = [];
  const app = new Hono();
  app.use(weirHono(client, {
    ...adapted<{ req: { raw: Request } }>(options, (context) => context.req.raw.headers),
    ...(options.denied === true ? { onDenied: (decision, c) => c.text(decision?.reason ?? "", 418) } : {}),
  }));
  app.use(async (context, next) => {
    handled.push(context.req.path);
    await next();
  });
  app.get("/ok", (c) => c.text("hello"));
  app.get("/empty", (c) => c.body(null, 204));
  app.get("/stream", (c) => streamText(c, async (stream) => { await stream.write("one two"); }));
  app.get("/boom", () => {
    throw new Error("boom");
  });
  return served((request, env) => app.fetch(request, env), handled);
}

async function onFetch(client: Limiter, options: SiteOptions): Promise<Site> {
  const handled: string[] = [];
  const handler = (request: Request): Response => {
    const { pathname } = new URL(request.url);
    handled.push(pathname);
    if (pathname === "/ok") return new Response("hello");
    if (pathname === "/empty") return new Response(null, { status: 204 });
    if (pathname === "/stream") return new Response(new Blob(["one two"]).stream());
    return pathname === "/boom" ? new Response("boom", { status: 500 }) : Response.redirect("http://127.0.0.1/", 302);
  };
  const limits = limited(handler, {
    client,
    ...adapted<Request>(options, (request) => request.headers),
    ...(options.denied === true ? { onDenied: (decision) => new Response(decision?.reason ?? "", { status: 418 }) } : {}),
  });
  return served((request) => limits(request), handled);
}

function served(fetch: (request: Request, env: unknown) => Response | Promise<Response>, handled: string[]): Promise<Site> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
      resolve(siteOf(server as Server, port, handled));
    });
  });
}

export function listening(server: Server, handled: string[] = []): Promise<Site> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve(siteOf(server, (server.address() as AddressInfo).port, handled));
    });
  });
}

function siteOf(server: Server, port: number, handled: string[]): Site {
  return {
    url: `http://127.0.0.1:${String(port)}`,
    handled,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => { resolve(); }));
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request with any headers, which `fetch` would refuse. */
export function ask(url: string, options: { method?: string; headers?: Record<string, string | string[]>; body?: string; signal?: AbortSignal } = {}): Promise<Answer> {
  const { body, ...rest } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { agent: false, ...rest }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => { resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }); });
    });
    request.on("error", reject).end(body);
  });
}
