// Leases. Names of tests begin with the rules of the contract.

import { expect, test, vi } from "vitest";

import { Client, LeaseLostError, LeaseRefusedError, MistakeError, OutageError, type LeaseQuestion } from "../src/index.js";
import { WorkOutcome, type AcquireRequest, type ReleaseRequest } from "../src/gen/weir/v1/leases_pb.js";
import { Reason } from "../src/gen/weir/v1/rate_limit_pb.js";
import { FakeClient } from "../src/testing.js";
import { startLeases } from "./helpers/server.js";

const QUESTION: LeaseQuestion = { resource: "db", consumer: "bob" };
const granted = ({ id }: { id: string }, ms = 900) => ({
  allowed: true, id, expiresAfter: { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 }, reason: Reason.OK, limit: 4n, inFlight: 1n, remaining: 3n,
});
const unavailable = (code = 14) => {
  // eslint-disable-next-line @typescript-eslint/only-throw-error -- a status
  throw { code, details: "no" };
};

test("C-17, C-52: a lease is renewed at a third of its ttl under an id of its own, and released as a success", async () => {
  const acquired: AcquireRequest[] = [];
  const released: ReleaseRequest[] = [];
  const renewals: number[] = [];
  const started = performance.now();
  await using server = await startLeases({
    acquire: (request) => {
      acquired.push(request);
      return granted(request);
    },
    renew: () => {
      renewals.push(performance.now() - started);
      return { held: true, expiresAfter: { seconds: 0n, nanos: 900_000_000 } };
    },
    release: (request) => {
      released.push(request);
      return { held: true };
    },
  });
  await using weir = new Client(server.target, { onFailure: "error", strategy: "usual" });
  const lease = await weir.lease({ ...QUESTION, weight: 2, ttlMs: 1500.5, attributes: { region: "eu" } });
  expect(lease).toMatchObject({ held: true, decision: { allowed: true, source: "weir", reason: "ok", limit: 4, remaining: 3 } });
  await vi.waitFor(() => { expect(renewals.length).toBeGreaterThanOrEqual(4); }, 10_000);
  expect(lease.held).toBe(true);
  await lease.release();
  await lease.release("dropped");
  await lease[Symbol.asyncDispose]();
  expect(lease.held).toBe(false);
  expect(lease.signal.aborted).toBe(false);
  expect(acquired).toMatchObject([{ resource: "db", consumer: "bob", strategy: "usual", weight: 2n, ttl: { seconds: 1n, nanos: 500_500_000 }, attributes: { region: "eu" } }]);
  expect(acquired[0]?.id).toMatch(/^[\w-]{22}$/);
  expect(released).toMatchObject([{ id: acquired[0]?.id, outcome: WorkOutcome.SUCCESS, attributes: { region: "eu" } }]);
  const count = renewals.length;
  await new Promise((resolve) => setTimeout(resolve, 350));
  expect(renewals).toHaveLength(count);
});

test("C-52: an outage shorter than the ttl loses nothing, a longer one is told when the ttl ends", async () => {
  let away = false;
  const outcomes: WorkOutcome[] = [];
  await using server = await startLeases({
    acquire: (request) => granted(request),
    renew: () => (away ? unavailable() : { held: true, expiresAfter: { seconds: 0n, nanos: 900_000_000 } }),
    release: ({ outcome }) => {
      outcomes.push(outcome);
      return { held: false };
    },
  });
  await using weir = new Client(server.target, { onFailure: "error" });
  const lease = await weir.lease(QUESTION);
  away = true;
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(lease.held).toBe(true);
  away = false;
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(lease.held).toBe(true);
  away = true;
  const since = performance.now();
  await new Promise((resolve) => { lease.signal.addEventListener("abort", resolve); });
  expect(performance.now() - since).toBeLessThan(1200);
  expect(lease.held).toBe(false);
  expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  await lease.release("success");
  expect(outcomes).toEqual([WorkOutcome.IGNORED]);
});

test("C-52: a process that was stalled holds nothing beyond the end", async () => {
  const outcomes: WorkOutcome[] = [];
  await using server = await startLeases({ acquire: (request) => granted(request, 300), release: ({ outcome }) => { outcomes.push(outcome); return { held: true }; } });
  await using weir = new Client(server.target, { onFailure: "error" });
  const lease = await weir.lease(QUESTION);
  const until = performance.now() + 400;
  while (performance.now() < until);
  expect([lease.held, lease.signal.aborted]).toEqual([false, false]);
  await lease.release();
  expect(outcomes).toEqual([WorkOutcome.IGNORED]);
});

test("C-52: a lease that the server has taken away is told at once", async () => {
  await using server = await startLeases({ acquire: (request) => granted(request, 2000), renew: () => ({ held: false }) });
  await using weir = new Client(server.target, { onFailure: "error" });
  const lease = await weir.lease(QUESTION);
  const since = performance.now();
  await new Promise((resolve) => { lease.signal.addEventListener("abort", resolve); });
  expect(performance.now() - since).toBeLessThan(1500);
});

test("C-53: an allowed answer without an id is a lease without renewals", async () => {
  let calls = 0;
  const count = () => {
    calls += 1;
    return { held: false };
  };
  await using server = await startLeases({ acquire: () => ({ allowed: true, reason: Reason.ALLOW_LIST }), renew: count, release: count });
  await using weir = new Client(server.target, { onFailure: "error" });
  const lease = await weir.lease({ ...QUESTION, ttlMs: 30 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(lease).toMatchObject({ held: true, decision: { reason: "allow_list" } });
  await lease.release();
  expect([calls, lease.held]).toEqual([0, false]);
});

test("a denial throws, and waiting asks again under the same id", async () => {
  const ids: string[] = [];
  await using server = await startLeases({
    acquire: (request) => {
      ids.push(request.id);
      return ids.length < 4 ? { allowed: false, reason: Reason.LIMITED, message: "No permits" } : granted(request, 5000);
    },
  });
  await using weir = new Client(server.target, { onFailure: "allow" });
  const refused: unknown = await weir.lease(QUESTION).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(LeaseRefusedError);
  expect(refused).toMatchObject({ decision: { allowed: false, source: "weir", reason: "limited" }, message: "the lease is denied (limited): No permits" });
  const lease = await weir.lease({ ...QUESTION, waitMs: 5000 });
  expect(lease.held).toBe(true);
  expect(ids).toHaveLength(4);
  expect(new Set(ids).size).toBe(2);
  await lease.release();
});

test("C-4, C-5: an outage is answered by the policy, a mistake never, and what may be held is given back", async () => {
  const released: string[] = [];
  let code = 14;
  await using server = await startLeases({
    acquire: () => unavailable(code),
    release: ({ id }) => {
      released.push(id);
      return { held: false };
    },
  });
  await using weir = new Client(server.target, { onFailure: "allow" });
  expect(await weir.lease(QUESTION)).toMatchObject({ held: true, decision: { allowed: true, source: "policy", failure: { code: "UNAVAILABLE" } } });
  await expect(weir.lease({ ...QUESTION, onFailure: "deny" })).rejects.toMatchObject({ name: "LeaseRefusedError", decision: { source: "policy" } });
  await expect(weir.lease({ ...QUESTION, onFailure: "error" })).rejects.toThrow(OutageError);
  await vi.waitFor(() => { expect(released).toHaveLength(3); });
  code = 5;
  await expect(weir.lease(QUESTION)).rejects.toThrow(MistakeError);
  for (const wrong of [{ weight: 0 }, { weight: 1.5 }, { ttlMs: 0 }, { waitMs: -1 }, { consumer: 1 }, { onFailure: "open" }]) {
    await expect(weir.lease({ ...QUESTION, ...wrong } as LeaseQuestion)).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: Object.keys(wrong)[0] });
  }
});

test("C-15: the caller's signal ends the waiting, and what was granted meanwhile is given back", async () => {
  const released: string[] = [];
  await using server = await startLeases({
    acquire: () => undefined,
    release: ({ id }) => {
      released.push(id);
      return { held: false };
    },
  });
  await using weir = new Client(server.target, { onFailure: "allow" });
  await expect(weir.lease({ ...QUESTION, signal: AbortSignal.timeout(50) })).rejects.toMatchObject({ name: "TimeoutError" });
  await vi.waitFor(() => { expect(released).toHaveLength(1); });
});

test("C-60: the fake grants leases, and the test takes them away", async () => {
  const weir = new FakeClient();
  weir.script.deny("eve");
  await expect(weir.lease({ resource: "db", consumer: "eve" })).rejects.toThrow(LeaseRefusedError);
  const lease = await weir.lease(QUESTION);
  lease.lose();
  expect(lease.held).toBe(false);
  expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  await lease.release();
  expect(weir.leases).toMatchObject([{ outcome: "ignored" }]);
  {
    await using _second = await weir.lease(QUESTION);
  }
  expect(weir.leases[1]?.outcome).toBe("success");
});
