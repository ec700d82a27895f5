// The fake of `weir-ratelimit/testing`. Names of tests begin with the rules of the contract.

import { expect, expectTypeOf, test } from "vitest";

import { Client, ClosedError, ConfigurationError, MistakeError, OutageError, type Limiter } from "../src/index.js";
import { FakeClient } from "../src/testing.js";

test("C-60: the fake has the public types", () => {
  expectTypeOf<FakeClient>().toExtend<Limiter>();
  expectTypeOf<Client>().toExtend<Limiter>();
  expectTypeOf<FakeClient["allow"]>().toEqualTypeOf<Client["allow"]>();
});

test("C-60: it answers by its script, the newest line that matches first", async () => {
  const weir = new FakeClient();
  expect(await weir.allow({ resource: "search" })).toMatchObject({ allowed: true, source: "weir", degraded: false, reason: "ok" });
  weir.script.deny("bob", { retryAfterMs: 1500, deniedBy: ["each"] });
  const denied = await weir.allow({ resource: "search", consumer: "bob" });
  expect(denied).toMatchObject({ allowed: false, reason: "limited", retryAfterMs: 1500, deniedBy: ["each"] });
  expect(denied.http()).toEqual({ status: 429, headers: { "Retry-After": "2" } });
  expect((await weir.allow({ resource: "search", consumer: "eve" })).allowed).toBe(true);
  weir.script.allow("bob", { times: 1, remaining: 4 });
  expect(await weir.allow({ resource: "search", consumer: "bob" })).toMatchObject({ allowed: true, remaining: 4 });
  expect((await weir.allow({ resource: "search", consumer: "bob" })).allowed).toBe(false);
  weir.script.clear();
  expect((await weir.allow({ resource: "search", consumer: "bob" })).allowed).toBe(true);
});

test("C-60: it is away, and makes mistakes", async () => {
  const weir = new FakeClient({ onFailure: "allow" });
  weir.script.away();
  expect(await weir.allow({ resource: "a" })).toMatchObject({ allowed: true, source: "policy", degraded: true, failure: { code: "UNAVAILABLE" } });
  expect(await weir.allow({ resource: "a", onFailure: "deny" })).toMatchObject({ allowed: false, source: "policy" });
  await expect(weir.allow({ resource: "a", onFailure: "error" })).rejects.toThrow(OutageError);
  weir.script.mistake("NOT_FOUND", { field: "strategy" });
  await expect(weir.allow({ resource: "a" })).rejects.toMatchObject({ code: "NOT_FOUND", field: "strategy" });
  await expect(weir.allow({ resource: "a" })).rejects.toThrow(MistakeError);
  expect(() => weir.script.mistake("UNAVAILABLE" as never)).toThrow(ConfigurationError);
  expect(() => new FakeClient({ onFailure: "open" as never })).toThrow(ConfigurationError);
});

test("C-60: it keeps what was asked, on the clock of the test", async () => {
  let now = 1000;
  const weir = new FakeClient({ clock: () => now });
  await weir.allow({ resource: "a", consumer: "bob" });
  now = 61_000;
  await weir.allow({ resource: "b" });
  expect(weir.asked).toEqual([{ resource: "a", consumer: "bob", at: 1000 }, { resource: "b", at: 61_000 }]);
});

test("C-60: headers come only if they are asked for, signals cancel, and calls after close fail", async () => {
  const weir = new FakeClient();
  weir.script.allow(undefined, { headers: { RateLimit: "x" } });
  expect((await weir.allow({ resource: "a" })).headers).toEqual({});
  expect((await weir.allow({ resource: "a", headers: true })).headers).toEqual({ RateLimit: "x" });
  await expect(weir.allow({ resource: "a", signal: AbortSignal.abort("left") })).rejects.toBe("left");
  await weir.close();
  await expect(weir.allow({ resource: "a" })).rejects.toThrow(ClosedError);
});
