// The middleware on each framework, with real requests and a fake. Names of tests begin with the rules of the contract.

import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";

import websocket from "@fastify/websocket";
import { serve } from "@hono/node-server";
import { createNodeWebSocket } from "@hono/node-ws";
import Fastify from "fastify";
import { Hono } from "hono";
import { WebSocket } from "ws";
import { describe, expect, test, vi } from "vitest";

import { weirExpress } from "../src/express.js";
import { weirFastify } from "../src/fastify.js";
import { limited } from "../src/fetch.js";
import { weirHono } from "../src/hono.js";
import { ConfigurationError } from "../src/index.js";
import { FakeClient } from "../src/testing.js";
import { ask, SITES, type SiteOptions } from "./helpers/apps.js";

const LIMITS = { RateLimit: '"each";r=6;t=3', "RateLimit-Policy": '"each";q=10;w=25' };
const consumer = (headers: Headers) => headers.get("x-user") ?? undefined;
const BOB = { headers: { "x-user": "bob" } };

describe.each(Object.entries(SITES))("%s", (name, start) => {
  const site = (client: FakeClient, options: Partial<SiteOptions> = {}) => start(client, { consumer, ...options });

  test("C-36: the headers are on every kind of answer", async () => {
    const weir = new FakeClient();
    weir.script.allow("bob", { headers: LIMITS });
    await using app = await site(weir);
    const paths = [["/ok", 200], ["/empty", 204], ["/stream", 200], ["/none", name === "fetch" ? 302 : 404], ["/boom", 500]] as const;
    await quietly(async () => {
      for (const [path, status] of paths) {
        const answer = await ask(app.url + path, BOB);
        expect([path, answer.status, answer.headers.ratelimit, answer.headers["ratelimit-policy"]]).toEqual([
          path, status, LIMITS.RateLimit, LIMITS["RateLimit-Policy"],
        ]);
      }
    });
    expect(weir.asked).toMatchObject(Array(5).fill({ resource: "api", consumer: "bob", headers: true }));
  });

  test("C-34, C-38: a denial has its status, and no handler runs and no body is read", async () => {
    const weir = new FakeClient();
    weir.script.deny("bob", { retryAfterMs: 1200, headers: LIMITS, message: "Try again in 2 seconds" });
    await using app = await site(weir);
    const answer = await ask(`${app.url}/ok`, { method: "POST", body: "x".repeat(1000), ...BOB });
    expect(answer).toMatchObject({ status: 429, body: "Try again in 2 seconds\n" });
    expect(answer.headers).toMatchObject({ ratelimit: LIMITS.RateLimit, "retry-after": "2" });
    expect(app.handled).toEqual([]);
    weir.script.deny("bob", { reason: "never" });
    expect((await ask(`${app.url}/ok`, BOB)).status).toBe(403);
  });

  test("C-37: a denial of the policy is 503 without fields of a limit", async () => {
    const weir = new FakeClient({ onFailure: "deny" });
    weir.script.away();
    await using app = await site(weir);
    const answer = await ask(`${app.url}/ok`, BOB);
    expect(answer.status).toBe(503);
    expect(Object.keys(answer.headers).filter((header) => /ratelimit|retry-after/.test(header))).toEqual([]);
    expect(app.handled).toEqual([]);
  });

  test("C-3: an outage that the policy allows reaches the handler without fields of a limit", async () => {
    const weir = new FakeClient({ onFailure: "allow" });
    weir.script.away();
    await using app = await site(weir);
    const answer = await ask(`${app.url}/ok`, BOB);
    expect(answer.status).toBe(200);
    expect(answer.headers.ratelimit).toBeUndefined();
  });

  test("C-5: an outage is the framework's error where the policy is error", async () => {
    const weir = new FakeClient({ onFailure: "error" });
    weir.script.away();
    await using app = await site(weir);
    await quietly(async () => { expect((await ask(`${app.url}/ok`, BOB)).status).toBe(500); });
    expect(app.handled).toEqual([]);
  });

  test("C-4: a mistake is the framework's 500, or by onMistake the policy", async () => {
    const weir = new FakeClient({ onFailure: "allow" });
    weir.script.mistake("NOT_FOUND");
    await using app = await site(weir);
    await quietly(async () => { expect((await ask(`${app.url}/ok`, BOB)).status).toBe(500); });
    expect(app.handled).toEqual([]);
    await using lenient = await site(weir, { onMistake: "policy" });
    expect((await ask(`${lenient.url}/ok`, BOB)).status).toBe(200);
    const strict = new FakeClient({ onFailure: "deny" });
    strict.script.mistake("NOT_FOUND");
    await using denying = await site(strict, { onMistake: "policy" });
    expect((await ask(`${denying.url}/ok`, BOB)).status).toBe(503);
  });

  test("C-39: only a real preflight passes unasked", async () => {
    const weir = new FakeClient();
    weir.script.deny();
    await using app = await site(weir);
    const preflight = { origin: "https://example.com", "access-control-request-method": "POST" };
    expect((await ask(`${app.url}/ok`, { method: "OPTIONS", headers: preflight })).status).not.toBe(429);
    expect(weir.asked).toEqual([]);
    expect((await ask(`${app.url}/ok`, { method: "OPTIONS", ...BOB })).status).toBe(429);
    expect((await ask(`${app.url}/ok`, { headers: { ...preflight, ...BOB.headers } })).status).toBe(429);
  });

  test("C-39: the header Upgrade alone buys nothing", async () => {
    const weir = new FakeClient();
    weir.script.deny();
    await using app = await site(weir);
    const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
    socket.write("GET /ok HTTP/1.1\r\nHost: a\r\nX-User: bob\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    const [head] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(head.toString()).toMatch(/^HTTP\/1\.1 429 /);
    expect(app.handled).toEqual([]);
  });

  test("C-18: no header of a request becomes an id", async () => {
    const weir = new FakeClient();
    await using app = await site(weir);
    await ask(`${app.url}/ok`, { headers: { "x-user": "bob", "x-request-id": "1", "idempotency-key": "2", traceparent: "3" } });
    expect(weir.asked).toHaveLength(1);
    expect(weir.asked[0]?.id).toBeUndefined();
  });

  test("missing consumers are denied, skipped, or one consumer", async () => {
    const weir = new FakeClient();
    await using app = await site(weir);
    expect((await ask(`${app.url}/ok`)).status).toBe(403);
    expect((await ask(`${app.url}/ok`, { headers: { "x-user": "x".repeat(513) } })).status).toBe(403);
    expect(app.handled).toEqual([]);
    await using skipping = await site(weir, { missing: "skip" });
    expect((await ask(`${skipping.url}/ok`)).status).toBe(200);
    expect(weir.asked).toEqual([]);
    await using named = await site(weir, { missing: "anonymous", attributes: () => ({ region: "é".repeat(257) }) });
    await ask(`${named.url}/ok`, BOB);
    expect(weir.asked).toMatchObject([{ consumer: "anonymous" }]);
  });

  test("functions give resource, cost and attributes, and skip", async () => {
    const weir = new FakeClient();
    await using app = await site(weir, {
      resource: (headers) => `for ${headers.get("x-user") ?? ""}`,
      cost: () => Promise.resolve(7),
      attributes: () => ({ region: "eu" }),
      skip: (headers) => headers.has("x-skip"),
      headers: false,
    });
    weir.script.allow("bob", { headers: LIMITS });
    expect((await ask(`${app.url}/ok`, BOB)).headers.ratelimit).toBeUndefined();
    await ask(`${app.url}/ok`, { headers: { "x-skip": "1" } });
    expect(weir.asked).toMatchObject([{ resource: "for bob", consumer: "bob", cost: 7, attributes: { region: "eu" }, headers: false }]);
  });

  test("onDenied answers in the place of the middleware, with the headers of the limit", async () => {
    const weir = new FakeClient();
    weir.script.deny("bob", { headers: LIMITS });
    await using app = await site(weir, { denied: true });
    const answer = await ask(`${app.url}/ok`, BOB);
    expect(answer).toMatchObject({ status: 418, body: "limited" });
    expect(answer.headers.ratelimit).toBe(LIMITS.RateLimit);
    expect(app.handled).toEqual([]);
  });

  test("C-40: a request is held, and a client that leaves meanwhile never reaches the handler", async () => {
    const weir = new FakeClient();
    weir.script.allow("bob", { waitMs: 60, headers: LIMITS }).allow("eve", { waitMs: 300 });
    await using app = await site(weir);
    const started = performance.now();
    expect((await ask(`${app.url}/ok`, BOB)).headers.ratelimit).toBe(LIMITS.RateLimit);
    expect(performance.now() - started).toBeGreaterThanOrEqual(59);
    const leaving = ask(`${app.url}/ok`, { headers: { "x-user": "eve" }, signal: AbortSignal.timeout(50) });
    await expect(leaving).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 350));
    expect(app.handled).toEqual(["/ok"]);
    await using unheld = await site(weir, { hold: false });
    const again = performance.now();
    await ask(`${unheld.url}/ok`, { headers: { "x-user": "eve" } });
    expect(performance.now() - again).toBeLessThan(250);
  });
});

test("wrong options of a middleware fail at once", () => {
  const client = new FakeClient();
  const right = { client, resource: "api", consumer: () => "bob" };
  const wrong = [{ consumer: "bob" }, { resource: "" }, { onMistake: "allow" }, { client: undefined }];
  for (const options of wrong.map((one) => ({ ...right, ...one }) as unknown as typeof right)) {
    expect(() => weirExpress(options.client, options)).toThrow(ConfigurationError);
    expect(() => weirHono(options.client, options)).toThrow(ConfigurationError);
    expect(() => limited(() => new Response(), options)).toThrow(ConfigurationError);
    weirFastify(undefined as never, options, (error) => { expect(error).toBeInstanceOf(ConfigurationError); });
  }
  expect(() => limited(undefined as never, right)).toThrow(/handler: required/);
});

test("C-39: a WebSocket of Fastify passes unasked, and a plain request to its route does not", async () => {
  const weir = new FakeClient();
  weir.script.deny();
  const app = Fastify();
  await app.register(websocket);
  await app.register(weirFastify, { client: weir, resource: "api", consumer: () => "bob" });
  app.get("/ws", { websocket: true }, (socket) => { socket.send("hello"); });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  expect(await firstMessage(`${url}/ws`)).toBe("hello");
  expect(weir.asked).toEqual([]);
  expect((await ask(`${url}/ws`)).status).toBe(429);
  await app.close();
});

test("C-39: a WebSocket of Hono on Node passes unasked, and a plain request to its route does not", async () => {
  const weir = new FakeClient();
  weir.script.deny();
  const app = new Hono();
  const { injectWebSocket, upgradeWebSocket } = createNodeWebSocket({ app });
  app.use(weirHono(weir, { resource: "api", consumer: () => "bob" }));
  app.get("/ws", upgradeWebSocket(() => ({ onOpen: (_, socket) => { socket.send("hello"); } })));
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  injectWebSocket(server);
  await once(server, "listening");
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  expect(await firstMessage(`${url}/ws`)).toBe("hello");
  expect(weir.asked).toEqual([]);
  expect((await ask(`${url}/ws`)).status).toBe(429);
  server.close();
});

async function firstMessage(url: string): Promise<string> {
  const socket = new WebSocket(url.replace("http", "ws"));
  const [message] = (await once(socket, "message")) as [Buffer];
  socket.terminate();
  return message.toString();
}

/** Error pages of frameworks are also printed. */
async function quietly(run: () => Promise<void>): Promise<void> {
  const spy = vi.spyOn(console, "error").mockImplementation(() => undefined);
  await run().finally(() => { spy.mockRestore(); });
}
