// The breaker, on a clock of the test.

import { expect, test } from "vitest";

import { Breaker } from "../src/breaker.js";
import { OutageError } from "../src/index.js";

const OUTAGE = new OutageError("UNAVAILABLE", "away");

/** Returns a breaker that has opened at 1500 ms. */
function opened(connected = false): Breaker {
  const breaker = new Breaker();
  for (const now of [1000, 1100, 1200, 1300, 1500]) breaker.failed(now, connected, OUTAGE);
  expect(breaker.open).toBe(true);
  expect(breaker.openError.cause).toBe(OUTAGE);
  return breaker;
}

test("C-30: five outages and half a second without an answer open it, one of both does not", () => {
  const burst = new Breaker();
  for (let call = 0; call < 64; call += 1) burst.failed(1000, true, OUTAGE);
  burst.failed(1499, true, OUTAGE);
  expect(burst.open).toBe(false);
  const rare = new Breaker();
  for (const now of [0, 10_000, 20_000, 30_000]) rare.failed(now, true, OUTAGE);
  expect(rare.open).toBe(false);
  rare.answered();
  for (const now of [40_000, 50_000, 60_000, 70_000]) rare.failed(now, true, OUTAGE);
  expect(rare.open).toBe(false);
  rare.failed(80_000, true, OUTAGE);
  expect(rare.open).toBe(true);
});

test("C-31: one call in 100 ms, doubling to 1 s, is a probe", () => {
  const breaker = opened();
  const probes: number[] = [];
  for (let now = 1500; now < 6500; now += 1) {
    if (!breaker.admits(now, false)) continue;
    probes.push(now - 1500);
    breaker.failed(now, false, OUTAGE);
  }
  expect(probes).toEqual([100, 300, 700, 1500, 2500, 3500, 4500]);
});

test("C-25, C-31: a connection that has come back is probed at once, at most every 100 ms", () => {
  const breaker = opened();
  for (const now of [1600, 1800, 2200, 3000]) {
    expect(breaker.admits(now, false)).toBe(true);
    breaker.failed(now, false, OUTAGE);
  }
  expect(breaker.admits(3050, true)).toBe(false);
  expect(breaker.admits(3100, true)).toBe(true);
  expect(breaker.admits(3300, true)).toBe(false);
  // A connection that comes and goes buys no more.
  let probes = 0;
  for (let now = 10_000; now < 11_000; now += 1) {
    if (!breaker.admits(now, true)) continue;
    probes += 1;
    breaker.failed(now, false, OUTAGE);
  }
  expect(probes).toBe(10);
});

test("C-32: the first answer ends it", () => {
  const breaker = opened();
  breaker.answered();
  expect(breaker.open).toBe(false);
  expect(breaker.openError.cause).toBeUndefined();
  expect(breaker.admits(1501, false)).toBe(true);
});

test("C-33: calls that are cancelled count neither way", () => {
  const breaker = opened();
  expect(breaker.admits(1600, false)).toBe(true);
  expect(breaker.open).toBe(true);
  expect(breaker.admits(1700, false)).toBe(false);
  expect(breaker.admits(1800, false)).toBe(true);
});
