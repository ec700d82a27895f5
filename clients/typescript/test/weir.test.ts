// The client against a real `weir`. Names of tests begin with the rules of the contract.

import { expect, test } from "vitest";

import { Client, LeaseRefusedError } from "../src/index.js";
import { startWeir, type Weir } from "./helpers/programs.js";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const portOf = ({ target }: Weir) => Number(target.split(":")[1]);

test("C-3, C-4, C-35: allowed, denied with headers, and a mistake with its field", async () => {
  await using server = await startWeir();
  await using weir = new Client(server.target, { onFailure: "error", timeoutMs: 5000 });
  const question = { resource: "api", consumer: "bob", headers: true };
  expect(await weir.allow(question)).toMatchObject({ allowed: true, source: "weir", reason: "ok", limit: 1, remaining: 0 });
  const denied = await weir.allow(question);
  expect(denied).toMatchObject({ allowed: false, reason: "limited", deniedBy: ["each"], binding: "each" });
  expect(denied.http()).toMatchObject({ status: 429, headers: { "X-RateLimit-Limit": "1", "Retry-After": "3600" } });
  await expect(weir.allow({ ...question, cost: 2 })).resolves.toMatchObject({ allowed: false, reason: "never" });
  await expect(weir.allow({ ...question, consumer: "x".repeat(513) })).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: "consumer" });
  await expect(weir.allow({ ...question, strategy: "apo" })).rejects.toMatchObject({ code: "NOT_FOUND", message: expect.stringContaining("api") as string });
});

test("C-52: permits are held, denied to others, and free again", async () => {
  await using server = await startWeir();
  await using weir = new Client(server.target, { onFailure: "error" });
  const lease = await weir.lease({ resource: "db", ttlMs: 900 });
  await expect(weir.lease({ resource: "db" })).rejects.toThrow(LeaseRefusedError);
  // Without renewals it would end meanwhile.
  await sleep(1500);
  expect(lease.held).toBe(true);
  const waiting = weir.lease({ resource: "db", waitMs: 5000 });
  await lease.release();
  expect(await waiting).toMatchObject({ held: true, decision: { allowed: true, limit: 1, remaining: 0 } });
  await (await waiting).release("dropped");
});

test("C-19, C-21, C-24, S-23: a rolling restart of two at 200 calls/s costs no answer", async () => {
  let [one, two] = [await startWeir(), await startWeir()];
  await using weir = new Client(`ipv4:${one.target},${two.target}`, { onFailure: "allow", timeoutMs: 2000 });
  expect(await weir.ready(5000)).toBe(true);
  await sleep(200);
  const started = performance.now();
  const calls: Promise<string | undefined>[] = [];
  const timer = setInterval(() => {
    while (calls.length < (performance.now() - started) / 5) {
      calls.push(weir.allow({ resource: "open" }).then(({ failure }) => failure?.message));
    }
  }, 5);
  try {
    await one.stop();
    one = await startWeir(portOf(one));
    await sleep(5000);
    await two.stop();
    two = await startWeir(portOf(two));
    await sleep(500);
  } finally {
    clearInterval(timer);
  }
  const failures = (await Promise.all(calls)).filter((message) => message !== undefined);
  await Promise.all([one.stop(), two.stop()]);
  expect(calls.length).toBeGreaterThan(400);
  expect(failures).toEqual([]);
});
