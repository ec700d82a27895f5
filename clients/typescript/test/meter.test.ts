// Meters beside the scripted server. Names of tests begin with the rules of the contract; S-34 to S-38 are scenarios.

import { metrics } from "@opentelemetry/api";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { afterAll, afterEach, beforeAll, expect, expectTypeOf, test, vi } from "vitest";

import { BudgetRefusedError, Client, ClosedError, MistakeError, type Meter } from "../src/index.js";
import { Settlements, type Send, type SettlementEvent } from "../src/settlements.js";
import { FakeClient } from "../src/testing.js";
import { OutageError } from "../src/errors.js";
import { startScripted, type Scripted } from "./helpers/programs.js";

const HELD = { allowed: true, reason: "REASON_OK", heldFor: "600s", limits: [{ name: "output", cost: "100" }] };
const QUESTION = { resource: "llm", consumer: "bob", estimate: { output: 100 } };

let server: Scripted;
beforeAll(async () => { server = await startScripted(); });
afterAll(() => server[Symbol.asyncDispose]());
afterEach(async () => { await server.execute({ clear: {} }); });

async function holds(outcome = "SETTLED"): Promise<void> {
  await server.execute({ answer: { match: { method: "ShouldAllow" }, decision: HELD } });
  await server.execute({ answer: { match: { method: "Settle" }, decision: { applied: true, outcome: `SETTLE_OUTCOME_${outcome}` } } });
}

async function settled(): Promise<unknown[]> {
  const { log } = (await server.execute({ log: {} })) as { log: { method: string; request: { costs?: unknown } }[] };
  return log.filter(({ method }) => method === "Settle").map(({ request }) => request.costs ?? {});
}

test("C-48: `await using` settles, and an aborted signal says that the work has failed", async () => {
  await holds();
  await using weir = new Client(server.target, { onFailure: "error", timeoutMs: 5000 });
  {
    await using meter = await weir.meter(QUESTION);
    meter.add({ output: 3 });
  }
  for (const used of [0, 7]) {
    const controller = new AbortController();
    await using meter = await weir.meter({ ...QUESTION, signal: controller.signal });
    if (used > 0) meter.add({ output: used });
    controller.abort();
  }
  expect(await settled()).toEqual([{ output: 3 }, { output: 0 }, { output: 7 }]);
});

test("C-15: a cancelled question is given back", async () => {
  await holds();
  await server.execute({ silent: { match: { method: "ShouldAllow" } } });
  await using weir = new Client(server.target, { onFailure: "allow", timeoutMs: 5000 });
  await weir.ready(5000);
  await expect(weir.meter({ ...QUESTION, signal: AbortSignal.timeout(100) })).rejects.toMatchObject({ name: "TimeoutError" });
  await vi.waitFor(async () => { expect(await settled()).toEqual([{ output: 0 }]); }, 5000);
});

test("C-49, C-51: what is due after the time of close is dropped and logged", async () => {
  const lines = vi.spyOn(console, "error").mockImplementation(() => undefined);
  await holds();
  await server.execute({ status: { match: { method: "Settle" }, code: "UNAVAILABLE", message: "gone" } });
  const weir = new Client(server.target, { onFailure: "error", timeoutMs: 5000 });
  for (let count = 0; count < 3; count += 1) await (await weir.meter(QUESTION)).settle({ output: 1 });
  const late = await weir.meter(QUESTION);
  const started = performance.now();
  await weir.close(500);
  expect(performance.now() - started).toBeGreaterThan(400);
  expect(performance.now() - started).toBeLessThan(3000);
  await expect(late.settle({ output: 1 })).rejects.toThrow(ClosedError);
  expect(() => weir.meter(QUESTION)).toThrow(ClosedError);
  expect(lines.mock.calls.join("\n")).toContain("settlements were dropped");
  lines.mockRestore();
});

test("C-49: the queue is bounded, its pauses grow to 5 s, and it gives up after 5 minutes", async () => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(1);
  try {
    const events: SettlementEvent[] = [];
    const sent: number[] = [];
    const away: Send = () => {
      sent.push(performance.now());
      return Promise.reject(new OutageError("UNAVAILABLE", "gone"));
    };
    const host = { isOpen: () => false, record: (event: SettlementEvent) => { events.push(event); }, tracked: <T>(promise: Promise<T>) => promise };
    const queue = new Settlements(host, away);
    await queue.settle(new Uint8Array(), away);
    await vi.advanceTimersByTimeAsync(310_000);
    expect(sent.slice(1, 9).map((at, index) => Math.round(at - (sent[index] ?? 0)))).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    expect(events).toEqual(["dropped"]);
    for (let count = 0; count < 10_002; count += 1) queue.release(new Uint8Array());
    expect(events).toHaveLength(3);
    queue.end();
    expect(events).toHaveLength(10_003);
  } finally {
    vi.restoreAllMocks();
    vi.useRealTimers();
  }
});

test("C-49: while the breaker is open, nothing is sent at once", async () => {
  await server.execute({ status: { code: "UNAVAILABLE", message: "gone" } });
  await using weir = new Client(server.target, { onFailure: "allow", timeoutMs: 1000, telemetry: "off" });
  await vi.waitFor(async () => {
    expect((await weir.allow({ resource: "a" })).failure?.message).toBe("UNAVAILABLE: the breaker is open");
  }, 5000);
  const meter = await weir.meter(QUESTION);
  const started = performance.now();
  await meter.settle({ output: 4 });
  expect(performance.now() - started).toBeLessThan(50);
  await holds();
  await vi.waitFor(async () => { expect(await settled()).toContainEqual({ output: 4 }); }, 5000);
});

test("C-59: settlements are counted by their event", async () => {
  const lines = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  await using weir = new Client(server.target, { onFailure: "error", timeoutMs: 5000 });
  for (const outcome of ["SETTLED", "LATE", "UNKNOWN", "LATE"]) {
    await holds(outcome);
    await (await weir.meter(QUESTION)).settle({ output: 1 });
  }
  await reader.forceFlush();
  const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics).flatMap((scope) => scope.metrics);
  const points = found.find(({ descriptor }) => descriptor.name === "weir.client.settlements")?.dataPoints ?? [];
  expect(Object.fromEntries(points.map(({ attributes, value }) => [attributes.event, value]))).toEqual({ settled: 1, late: 2, unknown: 1 });
  expect(lines).toHaveBeenCalledTimes(2);
  lines.mockRestore();
  metrics.disable();
});

test.each([
  { estimate: "5" }, { estimate: -1 }, { estimate: 1.5 }, { estimate: null }, { estimate: { output: 2 ** 52 } },
  { estimate: { output: { cost: 5, atLeast: 6 } } }, { estimate: { output: { cost: 5, atLeast: 0 } } },
  { estimate: 1, holdForMs: 0 }, { estimate: 1, holdForMs: 1e9 }, { estimate: 1, onError: "zero" },
])("C-4: a wrong question is a mistake: %o", async (wrong) => {
  await using weir = new Client("127.0.0.1:1", { onFailure: "allow" });
  for (const client of [weir, new FakeClient()]) await expect(client.meter({ resource: "llm", ...wrong } as never)).rejects.toThrow(MistakeError);
});

test("C-60: the fakes keep what was settled", async () => {
  expectTypeOf<FakeClient["meter"]>().returns.resolves.toExtend<Meter>();
  const fake = new FakeClient();
  fake.script.deny("eve");
  await expect(fake.meter({ ...QUESTION, consumer: "eve" })).rejects.toThrow(BudgetRefusedError);
  fake.script.allow("bob", { heldForMs: 60_000, limits: [{ name: "output", allowed: true, limit: 9, remaining: 1, cost: 100, granted: 40 }] });
  {
    await using meter = await fake.meter({ ...QUESTION, holdForMs: 60_000 });
    expect(meter.granted("output")).toBe(40);
    meter.add({ output: 30 });
    expect(fake.meters[0]?.settled).toBeUndefined();
  }
  expect(fake.meters[0]?.settled).toEqual({ output: 30 });
  expect(fake.asked.at(-1)).toMatchObject({ costs: { output: 100 }, holdForMs: 60_000 });
  const number = await fake.meter({ resource: "llm", consumer: "bob", estimate: 5 });
  await number.settle(7);
  expect(fake.meters[1]?.settled).toEqual({ cost: 7 });
  await fake.allow({ resource: "llm", costs: { output: 3 } });
  expect(fake.asked.at(-1)).toMatchObject({ costs: { output: 3 } });
});
