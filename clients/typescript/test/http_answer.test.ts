// Statuses and headers. Names of tests begin with the rules of the contract.

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import type { Reason } from "../src/index.js";
import { FakeClient, type ScriptedFields } from "../src/testing.js";

async function denied(fields: ScriptedFields) {
  const weir = new FakeClient();
  weir.script.deny(undefined, fields);
  return (await weir.allow({ resource: "a", headers: true })).http();
}

test("C-34: the status is that of docs/http.md for each reason", async () => {
  const page = readFileSync(new URL("../../../docs/http.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `REASON_(\w+)`(?:, not allowed)? \| (\d{3}) /gm)].map(([, reason = "", status]) => [reason.toLowerCase(), Number(status)] as const);
  expect(rows).toHaveLength(5);
  for (const [reason, status] of rows) expect([reason, (await denied({ reason: reason as Reason })).status]).toEqual([reason, status]);
  expect((await denied({ reason: "unknown" })).status).toBe(429);
  const allowed = await new FakeClient().allow({ resource: "a" });
  expect(allowed.http()).toEqual({ headers: {} });
});

test("C-35: Retry-After only if waiting helps, rounded up, never 0, and as the server wrote it", async () => {
  expect((await denied({ retryAfterMs: 0.001 })).headers).toEqual({ "Retry-After": "1" });
  expect((await denied({ retryAfterMs: 2000 })).headers).toEqual({ "Retry-After": "2" });
  expect((await denied({ retryAfterMs: 2000.001 })).headers).toEqual({ "Retry-After": "3" });
  expect((await denied({ reason: "never" })).headers).toEqual({});
  expect((await denied({ retryAfterMs: 2000, headers: { "retry-after": "7" } })).headers).toEqual({ "retry-after": "7" });
});
