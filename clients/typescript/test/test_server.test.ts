// `serve`: a real `weir` on the clock of the test. Names of tests begin with the rules of the contract.

import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import { Client, WeirError } from "../src/index.js";
import { serve } from "../src/testing.js";
import { CONFIG, program } from "./helpers/programs.js";

const WEIR = program("WEIR_BIN", "weir");
const QUESTION = { resource: "api", consumer: "bob" };

test("C-60: an hour passes in milliseconds", async () => {
  const server = await serve(WEIR, CONFIG);
  await using weir = new Client(server.address, { onFailure: "error", timeoutMs: 5000 });
  const allowed = async () => (await weir.allow(QUESTION)).allowed;
  expect([await allowed(), await allowed()]).toEqual([true, false]);
  const started = performance.now();
  await server.advance(3599.999);
  expect(await weir.allow(QUESTION)).toMatchObject({ allowed: false, retryAfterMs: 1 });
  await server.advance(0.001);
  expect(await allowed()).toBe(true);
  expect(performance.now() - started).toBeLessThan(5000);
  await expect(server.advance(-1)).rejects.toThrow(/number of seconds from 0/);
  await Promise.all([server.advance(1), server.advance(0)]);
  await Promise.all([server.close(), server.close()]);
  await expect(server.advance(1)).rejects.toThrow(WeirError);
});

test("C-60: a weir that does not start says why", async () => {
  const file = fileURLToPath(new URL("../package.json", import.meta.url));
  await expect(serve(WEIR, file)).rejects.toThrow(/weir has not started: .*package\.json/s);
  await expect(serve("/nowhere/weir", CONFIG)).rejects.toThrow(/weir has not started: .*ENOENT/);
});
