// The client over HTTP. Names of tests begin with the rules of the contract.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";

import { metrics, propagation, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterEach, expect, test, vi } from "vitest";

import { ClosedError, ConfigurationError, HttpClient, MistakeError, type HttpOptions, type Question } from "../src/http.js";
import { startWeir } from "./helpers/programs.js";

const QUESTION = { resource: "search", consumer: "bob" };
const made = (url: unknown, options: unknown) => () => new HttpClient(url as string, options as HttpOptions);

/** Answers every request as Weir does, and keeps what is sent. */
function recorder(body = '{"allowed":true,"reason":"REASON_OK"}') {
  const sent: { url: string; init: RequestInit }[] = [];
  const send = (url: unknown, init?: RequestInit) => {
    sent.push({ url: url as string, init: init ?? {} });
    return Promise.resolve(new Response(body, { headers: { "content-type": "application/json; charset=utf-8" } }));
  };
  return { sent, fetch: send as typeof fetch };
}

async function startHttp(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    [Symbol.asyncDispose]: () => { server.closeAllConnections(); server.close(); return Promise.resolve(); },
  };
}

async function measured<T>(promise: Promise<T>): Promise<[unknown, number]> {
  const started = performance.now();
  const outcome: unknown = await promise.catch((error: unknown) => error);
  return [outcome, performance.now() - started];
}

afterEach(() => { vi.useRealTimers(); trace.disable(); propagation.disable(); metrics.disable(); });

test("C-1: wrong options fail at once, and name the value and the bound", () => {
  for (const [options, text] of [
    [undefined, "options: required"],
    [{}, 'onFailure: required: "allow", "deny" or "error"'],
    [{ onFailure: "allow", tls: {} }, "tls: not one of the options onFailure"],
    [{ onFailure: "allow", ejection: false }, "ejection: not one of the options"],
    [{ onFailure: "allow", fetch: 1 }, "fetch: not a function"],
    [{ onFailure: "allow", timeoutMs: -1 }, "timeoutMs: -1 is not"],
    [{ onFailure: "allow", breaker: 1 }, "breaker: 1 is not true or false"],
  ] as const) {
    expect(made("https://weir", options)).toThrow(ConfigurationError);
    expect(made("https://weir", options)).toThrow(text);
  }
  for (const url of ["weir:8082", "weir", "", "ftp://weir", 8082, undefined, "https://"]) {
    expect(made(url, { onFailure: "allow" })).toThrow("baseUrl: not a URL such as");
  }
  expect(made("https://bob:s3cret@weir", { onFailure: "allow" })).toThrow(/^baseUrl: it has a user name or a password; set token$/);
  expect(made("https://weir/?key=s3cret", { onFailure: "allow" })).toThrow(/^baseUrl: it has a query or a fragment$/);
});

test("a token without TLS goes to loopback only, unless it is insecure on purpose", () => {
  for (const url of ["http://weir:8082", "http://10.0.0.1", "http://127.evil.example", "http://localhost.evil.example"]) {
    expect(made(url, { onFailure: "allow", token: "t" })).toThrow(/^token: it would be sent in plain text to http:.*; use https:/);
    expect(made(url, { onFailure: "allow", token: "t", insecureToken: true })).not.toThrow();
  }
  for (const url of ["https://weir", "http://localhost:8082", "http://127.0.0.1:1", "http://[::1]:1"]) {
    expect(made(url, { onFailure: "allow", token: () => "t" })).not.toThrow();
  }
});

test("it starts, draws and times nothing until its first call, and then uses what every fetch has", async () => {
  const spies = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(performance, "now"), vi.spyOn(Math, "random"), vi.spyOn(Date, "now")];
  const { sent, fetch } = recorder();
  const weir = new HttpClient("https://weir.example.com/limits/", { onFailure: "error", fetch, token: () => Promise.resolve("t"), telemetry: "off" });
  for (const spy of spies) expect(spy).not.toHaveBeenCalled();
  for (const spy of spies) spy.mockRestore();
  await weir.allow({ ...QUESTION, cost: 2, strategy: "s", attributes: { r: "eu" }, peek: true, atMost: true, id: "i", headers: true, timeoutMs: 250.5 });
  expect(sent.map(({ url }) => url)).toEqual(["https://weir.example.com/limits/weir.v1.RateLimitService/ShouldAllow"]);
  const { body, signal, ...init } = sent[0]?.init ?? {};
  expect(init).toEqual({
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/json", "connect-protocol-version": "1", "connect-timeout-ms": "251", authorization: "Bearer t" },
  });
  expect(signal).toBeInstanceOf(AbortSignal);
  expect(JSON.parse(body as string)).toEqual({ ...QUESTION, cost: 2, strategy: "s", attributes: { r: "eu" }, peek: true, atMost: true, id: "i", headers: true });
});

test("C-6, C-9: all fields arrive, durations in milliseconds", async () => {
  const { fetch } = recorder(JSON.stringify({
    allowed: false, reason: "REASON_LIMITED", limit: "10", remaining: "0", granted: 0, applied: false, deniedBy: ["each"], binding: "each",
    retryAfter: "3.500001s", resetAfter: "0s", wait: "0.000001s", message: "Later", headers: { a: "b" }, approximate: true,
    limits: [{ name: "each", allowed: false, limit: "10", remaining: "0", cause: "count", retryAfter: "3s" }],
  }));
  const weir = new HttpClient("https://weir", { onFailure: "error", fetch });
  expect({ ...(await weir.allow(QUESTION)) }).toEqual({
    allowed: false, source: "weir", degraded: false, reason: "limited", limit: 10, remaining: 0, granted: 0, applied: false, deniedBy: ["each"],
    binding: "each", retryAfterMs: 3500.001, resetAfterMs: 0, waitMs: 0.001, message: "Later", headers: { a: "b" }, local: false, approximate: true,
    limits: [{ name: "each", allowed: false, limit: 10, remaining: 0, cause: "count", retryAfterMs: 3000 }],
  });
});

test("C-11: it ends in time, whether the headers or the body do not come", async () => {
  await using server = await startHttp((request, response) => {
    if (request.headers["connect-timeout-ms"] === "100") return;
    response.writeHead(200, { "content-type": "application/json" }).write('{"allowed"');
  });
  await using weir = new HttpClient(server.url, { onFailure: "allow", breaker: false });
  for (const timeoutMs of [100, 101]) {
    const times: number[] = [];
    while (times.length < 5 || (times.length < 40 && Math.min(...times) >= 121)) {
      const [decision, took] = await measured(weir.allow({ ...QUESTION, timeoutMs }));
      expect(decision).toMatchObject({ source: "policy", failure: { code: "DEADLINE_EXCEEDED" } });
      times.push(took);
    }
    // The shortest one of up to 40, because other programs keep the processors busy.
    expect(Math.min(...times)).toBeGreaterThanOrEqual(99);
    expect(Math.min(...times)).toBeLessThan(121);
  }
});

test("C-12, C-15: the caller's signal wins, no policy is asked, and the server sees the end", async () => {
  let [asked, cancelled] = [0, 0];
  await using server = await startHttp((request) => {
    asked += 1;
    request.on("close", () => { cancelled += 1; });
  });
  await using weir = new HttpClient(server.url, { onFailure: "allow", timeoutMs: 5000 });
  const [late, took] = await measured(weir.allow({ ...QUESTION, signal: AbortSignal.timeout(30) }));
  expect(late).toMatchObject({ name: "TimeoutError" });
  expect(took).toBeLessThan(200);
  const controller = new AbortController();
  const call = weir.allow({ ...QUESTION, signal: controller.signal });
  await vi.waitFor(() => { expect(asked).toBe(2); });
  controller.abort("left");
  await expect(call).rejects.toBe("left");
  await expect(weir.allow({ ...QUESTION, signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
  await vi.waitFor(() => { expect(cancelled).toBe(2); });
  expect(asked).toBe(2);
});

test("C-14: an answer that arrived while the process was stalled counts", async () => {
  await using server = await startWeir();
  await using weir = new HttpClient(server.url, { onFailure: "deny", breaker: false });
  await weir.allow({ resource: "open", timeoutMs: 5000 });
  let counted = 0;
  for (let call = 0; call < 10; call += 1) {
    const asked = weir.allow({ resource: "open" });
    // The question leaves before the stall.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const stalled = performance.now() + 300;
    while (performance.now() < stalled);
    if ((await asked).source === "weir") counted += 1;
  }
  expect(counted).toBeGreaterThanOrEqual(9);
});

test("C-10: questions are checked before they are sent", async () => {
  const { sent, fetch } = recorder();
  await using weir = new HttpClient("https://weir", { onFailure: "allow", fetch });
  for (const [question, field] of [[{ cost: 2 ** 53 }, "cost"], [{ resource: 1 }, "resource"], [{ onFailure: "open" }, "onFailure"]] as const) {
    const error: unknown = await weir.allow({ resource: "a", ...question } as unknown as Question).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(MistakeError);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", field });
  }
  await expect(weir.allow({ resource: "a", consumer: "ü".repeat(32_768) })).rejects.toMatchObject({ code: "OUT_OF_RANGE" });
  expect(sent).toEqual([]);
});

test("C-29, C-30: the breaker opens and ends, and a closed client fails", async () => {
  let away = true;
  const { sent, fetch: answering } = recorder();
  const fetch = (async (url: string, init: RequestInit) => {
    const answer = await answering(url, init);
    if (away) throw new TypeError("fetch failed");
    return answer;
  }) as typeof globalThis.fetch;
  const weir = new HttpClient("https://weir", { onFailure: "deny", fetch });
  await vi.waitFor(async () => {
    expect((await weir.allow(QUESTION)).failure?.message).toBe("UNAVAILABLE: the breaker is open");
  }, 5000);
  const before = sent.length;
  for (let call = 0; call < 1000; call += 1) expect((await weir.allow(QUESTION)).allowed).toBe(false);
  expect(sent.length - before).toBeLessThanOrEqual(4);
  away = false;
  await vi.waitFor(async () => { expect((await weir.allow(QUESTION)).source).toBe("weir"); }, 5000);
  await Promise.all([weir.close(), weir.close()]);
  await expect(weir.allow(QUESTION)).rejects.toThrow(ClosedError);
});

test("C-57: no text and no error shows a token", async () => {
  const secret = "s3cret-t0ken";
  expect(made("https://weir", { onFailure: "allow", token: `${secret}\n` })).toThrow(/^token: not a text/);
  const spy = vi.spyOn(console, "error").mockImplementation(() => undefined);
  await using server = await startHttp((_, response) => {
    response.writeHead(401, { "content-type": "application/json" }).end('{"code":"unauthenticated","message":"unknown token"}');
  });
  await using weir = new HttpClient(server.url, { onFailure: "allow", token: secret });
  const { failure } = await weir.allow({ ...QUESTION, timeoutMs: 5000 });
  expect(failure).toMatchObject({ code: "UNAUTHENTICATED", message: "UNAUTHENTICATED: unknown token" });
  expect(spy).toHaveBeenCalledOnce();
  expect(inspect([weir, failure, spy.mock.calls], { depth: 20, showHidden: true })).not.toContain(secret);
  spy.mockRestore();
  for (const token of [() => { throw new Error("no"); }, () => Promise.reject(new Error("no")), () => "ü"]) {
    const refused = new HttpClient("https://weir", { onFailure: "deny", token, fetch: recorder().fetch });
    expect(await refused.allow(QUESTION)).toMatchObject({ allowed: false, failure: { code: "UNAUTHENTICATED" } });
  }
  const hangs = new HttpClient("https://weir", { onFailure: "deny", token: () => new Promise<string>(() => undefined), timeoutMs: 50 });
  expect(await hangs.allow(QUESTION)).toMatchObject({ allowed: false, failure: { code: "DEADLINE_EXCEEDED" } });
});

test("C-59: calls are traced, and the context is sent", async () => {
  const spans = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  propagation.setGlobalPropagator({
    inject: (here, carrier, setter) => { setter.set(carrier, "traceparent", trace.getSpanContext(here)?.traceId ?? ""); },
    extract: (here) => here,
    fields: () => ["traceparent"],
  });
  const { sent, fetch } = recorder();
  await using weir = new HttpClient("https://weir", { onFailure: "error", fetch });
  await vi.waitFor(async () => {
    await weir.allow(QUESTION);
    expect(spans.getFinishedSpans().length).toBeGreaterThan(0);
  });
  const [span] = spans.getFinishedSpans();
  expect(span?.attributes).toEqual({ "weir.allowed": true, "weir.source": "weir", "weir.reason": "ok" });
  expect((sent.at(-1)?.init.headers as Record<string, string>).traceparent).toBe(span?.spanContext().traceId);
});

test("a real weir: allowed, denied with headers, mistakes, stopped, and back", async () => {
  const server = await startWeir();
  await using weir = new HttpClient(server.url, { onFailure: "allow", timeoutMs: 5000 });
  const question = { resource: "api", consumer: "bob", headers: true };
  expect(await weir.allow(question)).toMatchObject({ allowed: true, source: "weir", reason: "ok", limit: 1, remaining: 0 });
  const denied = await weir.allow(question);
  expect(denied).toMatchObject({ allowed: false, reason: "limited", deniedBy: ["each"], binding: "each" });
  expect(denied.http()).toMatchObject({ status: 429, headers: { "X-RateLimit-Limit": "1", "Retry-After": "3600" } });
  await expect(weir.allow({ ...question, cost: 2 })).resolves.toMatchObject({ allowed: false, reason: "never" });
  await expect(weir.allow({ ...question, consumer: "x".repeat(513) })).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: "consumer" });
  await expect(weir.allow({ ...question, strategy: "apo" })).rejects.toMatchObject({ code: "NOT_FOUND", message: expect.stringContaining("api") as string });
  await using lost = new HttpClient(`${server.url}/elsewhere`, { onFailure: "allow" });
  await expect(lost.allow(question)).rejects.toMatchObject({ code: "UNIMPLEMENTED", message: expect.stringContaining("baseUrl") as string });
  await server.stop();
  expect(await weir.allow({ ...question, timeoutMs: 100 })).toMatchObject({ allowed: true, source: "policy", failure: { code: "UNAVAILABLE" } });
  const back = await startWeir(0, Number(new URL(server.url).port));
  await vi.waitFor(async () => { expect((await weir.allow(question)).source).toBe("weir"); }, 5000);
  await back.stop();
});
