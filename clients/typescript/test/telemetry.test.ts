// Traces and metrics. Names of tests begin with the rules of the contract.

import { context, metrics, propagation, trace, type TextMapPropagator } from "@opentelemetry/api";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Client } from "../src/index.js";
import { Reason } from "../src/gen/weir/v1/rate_limit_pb.js";
import { startLeases, startServer, type TestServer } from "./helpers/server.js";

const spans = new InMemorySpanExporter();
let exporter: InMemoryMetricExporter;
let provider: MeterProvider;
let server: TestServer;

const propagator: TextMapPropagator = {
  inject: (here, carrier, setter) => { setter.set(carrier, "traceparent", trace.getSpanContext(here)?.traceId ?? ""); },
  extract: (here) => here,
  fields: () => ["traceparent"],
};
const parents: unknown[] = [];

beforeEach(async () => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 })] });
  metrics.setGlobalMeterProvider(provider);
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  propagation.setGlobalPropagator(propagator);
  parents.length = 0;
  server = await startServer((call) => {
    parents.push(...call.metadata.get("traceparent"));
    if (call.request.consumer === "away") return undefined;
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- a status
    if (call.request.consumer === "wrong") throw { code: 5, details: "unknown strategy" };
    const allowed = call.request.consumer !== "bob";
    return { allowed, reason: allowed ? Reason.OK : Reason.LIMITED, deniedBy: allowed ? [] : ["each"] };
  });
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await provider.shutdown();
  metrics.disable();
  trace.disable();
  propagation.disable();
  context.disable();
  spans.reset();
});

async function points(): Promise<[string, unknown, unknown][]> {
  await provider.forceFlush();
  const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
  const all = scopes.flatMap(({ metrics: families }) => families);
  return all.flatMap(({ descriptor, dataPoints }) =>
    dataPoints.map(({ attributes, value }) => [descriptor.name, attributes, typeof value === "number" ? value : value.count] as [string, unknown, unknown]));
}

test("C-59: spans and metrics of each outcome, and the context of the trace as metadata", async () => {
  await using weir = new Client(server.target, { onFailure: "allow", timeoutMs: 300 });
  await weir.ready(5000);
  await weir.allow({ resource: "search", consumer: "eve" });
  await weir.allow({ resource: "search", consumer: "bob" });
  await weir.allow({ resource: "search", consumer: "away" });
  await weir.allow({ resource: "search", consumer: "wrong" }).catch(() => undefined);
  await weir.allow({ resource: "search", consumer: "away", onFailure: "error" }).catch(() => undefined);
  const controller = new AbortController();
  const aborted = weir.allow({ resource: "search", consumer: "away", timeoutMs: 5000, signal: controller.signal });
  await vi.waitFor(() => { expect(server.asked).toHaveLength(6); }, 4000);
  controller.abort();
  await aborted.catch(() => undefined);
  const finished = spans.getFinishedSpans();
  expect(finished.map(({ name, attributes, status }) => [name, attributes, status.code])).toEqual([
    ["weir.allow", { "weir.allowed": true, "weir.source": "weir", "weir.reason": "ok" }, 0],
    ["weir.allow", { "weir.allowed": false, "weir.source": "weir", "weir.reason": "limited", "weir.denied_by": ["each"] }, 0],
    ["weir.allow", { "weir.allowed": true, "weir.source": "policy", "weir.reason": "policy" }, 0],
    ["weir.allow", {}, 2],
    ["weir.allow", {}, 2],
    ["weir.allow", {}, 2],
  ]);
  expect(parents).toEqual(finished.map((span) => span.spanContext().traceId));
  expect(await points()).toEqual(expect.arrayContaining([
    ["weir.client.decisions", { outcome: "allowed", source: "weir", reason: "ok" }, 1],
    ["weir.client.decisions", { outcome: "denied", source: "weir", reason: "limited" }, 1],
    ["weir.client.decisions", { outcome: "allowed", source: "policy", reason: "policy" }, 1],
    ["weir.client.decisions", { outcome: "error" }, 2],
    ["weir.client.decisions", { outcome: "cancelled" }, 1],
    ["weir.client.outages", { code: "DEADLINE_EXCEEDED" }, 2],
    ["weir.client.duration", {}, 6],
  ]));
});

test("C-59: how a lease begins is traced and counted, and the outages of its renewals are counted", async () => {
  const traces: string[] = [];
  let denied = true;
  await using leases = await startLeases({
    acquire: () => (denied ? { reason: Reason.LIMITED } : { allowed: true, id: "x", reason: Reason.OK, expiresAfter: { seconds: 0n, nanos: 300_000_000 } }),
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- a status
    renew: () => { throw { code: 14, details: "away" }; },
  }, (metadata) => traces.push(...(metadata.get("traceparent") as string[])));
  await using weir = new Client(leases.target, { onFailure: "error", timeoutMs: 5000 });
  await weir.lease({ resource: "db" }).catch(() => undefined);
  denied = false;
  const lease = await weir.lease({ resource: "db" });
  await vi.waitFor(() => { expect(lease.held).toBe(false); });
  const finished = spans.getFinishedSpans();
  expect(finished.map(({ name, attributes, status }) => [name, attributes, status.code])).toEqual([
    ["weir.lease", { "weir.allowed": false, "weir.source": "weir", "weir.reason": "limited" }, 0],
    ["weir.lease", { "weir.allowed": true, "weir.source": "weir", "weir.reason": "ok" }, 0],
  ]);
  expect(traces.slice(0, 3)).toEqual([0, 1, 1].map((index) => finished[index]?.spanContext().traceId));
  const all = await points();
  expect(all).toEqual(expect.arrayContaining([
    ["weir.client.decisions", { outcome: "denied", source: "weir", reason: "limited" }, 1],
    ["weir.client.decisions", { outcome: "allowed", source: "weir", reason: "ok" }, 1],
    ["weir.client.duration", {}, 2],
  ]));
  expect(all.find(([name]) => name === "weir.client.outages")).toMatchObject([expect.anything(), { code: "UNAVAILABLE" }, expect.any(Number)]);
});

test("C-58: consumers and resources are in no label and in no span", async () => {
  await using weir = new Client(server.target, { timeoutMs: 5000, onFailure: "allow" });
  await weir.allow({ resource: "secret-search", consumer: "secret-eve", strategy: "secret-strategy", attributes: { a: "secret-b" } });
  const seen = [await points(), spans.getFinishedSpans().map(({ name, attributes }) => [name, attributes])];
  expect(JSON.stringify(seen)).toContain("weir.allow");
  expect(JSON.stringify(seen)).not.toContain("secret");
});

test("C-59: the number of open breakers", async () => {
  const open = async () => (await points()).filter(([name]) => name === "weir.client.breaker.open").map(([, , value]) => value);
  await using weir = new Client("127.0.0.1:1", { onFailure: "allow", timeoutMs: 100 });
  const started = performance.now();
  let outage = "";
  while (!outage.includes("breaker") && performance.now() - started < 5000) {
    outage = (await weir.allow({ resource: "search" })).failure?.message ?? "";
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(outage).toBe("UNAVAILABLE: the breaker is open");
  expect(await open()).toEqual([1]);
  await weir.close();
  expect(await open()).toEqual([0]);
});

test("telemetry: off sends and counts nothing", async () => {
  await using weir = new Client(server.target, { onFailure: "allow", telemetry: "off", timeoutMs: 5000 });
  await weir.allow({ resource: "search" });
  expect(spans.getFinishedSpans()).toEqual([]);
  expect(await points()).toEqual([]);
  expect(parents).toEqual([]);
});
