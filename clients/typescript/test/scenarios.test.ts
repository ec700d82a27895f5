// The scenarios of all client libraries: clients/conformance/README.md says how they are read.

import { readFileSync } from "node:fs";

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { BudgetRefusedError, Client, LeaseRefusedError, MistakeError, OutageError, WeirError, type Decision, type Lease, type LeaseQuestion, type Limiter, type Meter, type MeterQuestion, type Question, type Use, type WorkOutcome } from "../src/index.js";
import { HttpClient, type HttpOptions } from "../src/http.js";
import { startScripted, type Scripted } from "./helpers/programs.js";

type Fields = Record<string, unknown>;
interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly rules: string[];
  readonly transports: string[];
  readonly client?: Fields;
  readonly given: object[];
  readonly when: Step[];
  readonly then: Fields[];
  readonly asked?: Fields[];
  readonly last?: Fields;
  readonly calls?: Fields[];
  readonly metadata?: Record<string, string>;
}
interface Step {
  readonly allow?: Fields;
  readonly command?: object;
  readonly pause_ms?: number;
  readonly repeat?: { times: number; every_ms: number; allow: Fields };
  readonly lease?: Fields;
  readonly held?: { after_ms: number };
  readonly lost?: { at_most_ms: number };
  readonly release?: WorkOutcome;
  readonly meter?: Fields;
  readonly granted?: string;
  readonly add?: Use;
  readonly settle?: Use;
  readonly leave?: "success" | "error" | "cancelled";
}
interface Outcome {
  readonly value: unknown;
  readonly ms: number;
}

const read = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as unknown;
const SCENARIOS = read("../../conformance/scenarios.json") as Scenario[];
const SKIPS = read("skips.json") as Record<string, string>;

let server: Scripted;
beforeAll(async () => { server = await startScripted(); });
afterAll(() => server[Symbol.asyncDispose]());
afterEach(async () => {
  for (const command of ["thaw", "listen", "clear"]) await server.execute({ [command]: {} });
});

test("every scenario is run, or skipped with a reason", () => {
  const ids = SCENARIOS.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toHaveLength(93);
  expect(Object.keys(SKIPS)).toHaveLength(0);
  expect(["grpc", "http"].map((transport) => SCENARIOS.filter(({ transports }) => transports.includes(transport)).length)).toEqual([73, 63]);
});

describe.each(SCENARIOS.filter(({ id }) => !(id in SKIPS)))("$id", (scenario) => {
  test.each(scenario.transports)(`%s: ${scenario.rules.join(", ")}: ${scenario.title}`, async (transport) => {
    for (const command of scenario.given) await server.execute(command);
    const options = camel({ on_failure: "error", timeout_ms: 5000, ...scenario.client }) as unknown as HttpOptions;
    const weir = transport === "grpc" ? new Client(server.target, options) : new HttpClient(server.url, options);
    const outcomes: Outcome[][] = [];
    let held: Lease | undefined;
    let meter: Meter | undefined;
    for (const { allow, command, pause_ms, repeat, lease, held: look, lost, release, ...metered } of scenario.when) {
      await sleep(pause_ms ?? look?.after_ms ?? 0);
      if (command !== undefined) await server.execute(command);
      else if (release !== undefined) await held?.release(release);
      else if (look !== undefined) outcomes.push([{ value: { held: held?.held }, ms: 0 }]);
      else if (lost !== undefined) outcomes.push([await looked(held, lost.at_most_ms)]);
      else if (lease !== undefined) {
        const value: unknown = await (weir as Client).lease(camel(lease) as unknown as LeaseQuestion).catch((error: unknown) => error);
        if (!(value instanceof WeirError)) held = value as Lease;
        outcomes.push([{ value: value instanceof WeirError ? value : held?.decision, ms: 0 }]);
      } else if (metered.meter !== undefined) {
        const outcome = await timed((weir as Client).meter(camel(metered.meter) as unknown as MeterQuestion));
        if (!(outcome.value instanceof WeirError)) meter = outcome.value as Meter;
        outcomes.push([outcome.value instanceof WeirError ? outcome : { ...outcome, value: meter?.decision }]);
      } else if (meter !== undefined && Object.keys(metered).length > 0) outcomes.push(...(await use(meter, metered)));
      else if (pause_ms !== undefined) continue;
      else outcomes.push(await calls(weir, repeat ?? { times: 1, every_ms: 0, allow: allow ?? {} }));
    }
    await weir.close();
    expect(outcomes).toHaveLength(scenario.then.length);
    for (const [index, wanted] of scenario.then.entries()) for (const outcome of outcomes[index] ?? []) check(outcome, wanted);
    const { log } = (await server.execute({ log: {} })) as { log: { method: string; request: Fields; metadata: [string, string][] }[] };
    if (scenario.asked !== undefined) expect(log.map(({ request }) => request)).toEqual(scenario.asked);
    if (scenario.last !== undefined) expect({ method: log.at(-1)?.method, ...log.at(-1)?.request }).toMatchObject(scenario.last);
    if (scenario.calls !== undefined) {
      expect(log.map(({ method, request: { id: _, ...request } }) => ({ method, ...request }))).toEqual(scenario.calls);
      const ids = new Set(log.map(({ request }) => request.id));
      expect([...ids]).toEqual([ids.has(undefined) ? undefined : expect.stringMatching(/^[\w-]{22}$/)]);
    }
    for (const entry of Object.entries(scenario.metadata ?? {})) expect(log[0]?.metadata).toContainEqual(entry);
  });
});

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function timed(promise: Promise<unknown>): Promise<Outcome> {
  const started = performance.now();
  const value: unknown = await promise.catch((error: unknown) => error);
  return { value, ms: performance.now() - started };
}

/** Looks at a lease until it is lost, or the time is over. */
async function looked(lease: Lease | undefined, atMostMs: number): Promise<Outcome> {
  const started = performance.now();
  while (lease?.held === true && performance.now() - started < atMostMs) await sleep(10);
  return { value: { held: lease?.held }, ms: performance.now() - started };
}

/** Uses a meter. `add` has an outcome only if it fails. */
async function use(meter: Meter, { granted, add, settle, leave }: Pick<Step, "granted" | "add" | "settle" | "leave">): Promise<Outcome[][]> {
  if (granted !== undefined) return [[{ value: { granted: meter.granted(granted) ?? null }, ms: 0 }]];
  if (settle !== undefined) return [[await timed(meter.settle(settle))]];
  if (leave !== undefined) return [[await timed(Promise.resolve(leave === "success" ? meter[Symbol.asyncDispose]() : meter.fail()))]];
  try {
    meter.add(add ?? {});
    return [];
  } catch (value) {
    return [[{ value, ms: 0 }]];
  }
}

async function calls(weir: Limiter, { times, every_ms, allow }: { times: number; every_ms: number; allow: Fields }): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let call = 0; call < times; call += 1) {
    if (every_ms > 0) await sleep(every_ms);
    outcomes.push(await timed(weir.allow(camel(allow) as unknown as Question)));
  }
  return outcomes;
}

function check({ value, ms }: Outcome, { within_ms, error, text, ...wanted }: Fields): void {
  if (within_ms !== undefined) expect(ms).toBeLessThanOrEqual(within_ms as number);
  if (Object.keys(wanted).length === 0 && error === undefined) {
    expect(value).toBeUndefined();
    return;
  }
  if ("held" in wanted || Object.keys(wanted).join() === "granted") {
    expect(value).toEqual(wanted);
    return;
  }
  if (error === "lease_refused" || error === "budget_refused") {
    expect(value).toBeInstanceOf(error === "lease_refused" ? LeaseRefusedError : BudgetRefusedError);
    expect(shown((value as LeaseRefusedError).decision)).toMatchObject(camel(wanted));
    return;
  }
  if (error === undefined) {
    expect(value).not.toBeInstanceOf(Error);
    expect(shown(value as Decision)).toMatchObject(camel(wanted));
    return;
  }
  expect(value).toBeInstanceOf(error === "mistake" ? MistakeError : OutageError);
  const { code, field = null } = value as MistakeError;
  expect({ code, field }).toMatchObject(camel(wanted));
  expect((value as Error).message).toContain(text ?? "");
}

/** Returns a decision as the scenarios write it: what is not set is null. */
function shown(decision: Decision): Fields {
  const unset = Object.fromEntries(["limit", "remaining", "retryAfterMs", "resetAfterMs", "waitMs", "heldForMs", "granted", "applied", "binding", "message"].map((name) => [name, null]));
  const limits = decision.limits.map((limit) => ({ retryAfterMs: null, resetAfterMs: null, cause: null, ...limit }));
  const { status = null, headers } = decision.http();
  return { ...unset, ...decision, limits, failure: decision.failure?.code ?? null, http: { status, headers } };
}

/** Returns fields, and lists of fields, with the names of TypeScript. */
function camel(fields: Fields): Fields {
  const inside = (item: unknown): unknown => (isFields(item) ? camel(item) : item);
  const value = (one: unknown, name: string): unknown => {
    if (Array.isArray(one)) return one.map(inside);
    // The names of costs are those of the configuration.
    const isCosts = (name === "costs" || name === "estimate") && isFields(one);
    return isCosts ? Object.fromEntries(Object.entries(one).map(([cost, units]) => [cost, inside(units)])) : one;
  };
  return Object.fromEntries(Object.entries(fields).map(([name, one]) => [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value(one, name)]));
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
