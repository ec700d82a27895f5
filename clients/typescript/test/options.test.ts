// Options and questions that are wrong. Names of tests begin with the rules of the contract.

import { inspect } from "node:util";

import { expect, test, vi } from "vitest";

import { Client, ConfigurationError, MistakeError, type Options, type Question } from "../src/index.js";
import { FakeClient } from "../src/testing.js";
import { startServer } from "./helpers/server.js";

const made = (target: unknown, options: unknown) => () => new Client(target as string, options as Options);

test("C-1: the constructor neither fails for the network nor waits", async () => {
  for (const target of ["nowhere.invalid:1", "127.0.0.1:1", "dns:///nowhere.invalid:1", "unix:/nowhere/socket"]) {
    const started = performance.now();
    const weir = new Client(target, { onFailure: "deny" });
    expect(performance.now() - started).toBeLessThan(50);
    await weir.close();
  }
});

test("C-2: onFailure is required, also by the types", () => {
  expect(made("weir:8081", {})).toThrow('onFailure: required: "allow", "deny" or "error"');
  // @ts-expect-error -- the option has no default.
  expect(() => new Client("weir:8081", {})).toThrow(ConfigurationError);
  // @ts-expect-error -- the option has no default.
  expect(() => new Client("weir:8081")).toThrow(ConfigurationError);
});

test("C-1: wrong options fail at once, and name the value and the bound", () => {
  for (const [options, text] of [
    [{ onFailure: "open" }, "onFailure: open is not"],
    [{ timeoutMs: 0 }, "timeoutMs: 0 is not a number above 0 and at most 3600000"],
    [{ timeoutMs: Number.NaN }, "timeoutMs: NaN"],
    [{ timeoutMs: 3_600_001 }, "timeoutMs: 3600001"],
    [{ timeout: 100 }, "timeout: not one of the options onFailure, timeoutMs"],
    [{ breaker: "no" }, "breaker: no is not true or false"],
    [{ telemetry: "on" }, 'telemetry: on is not "auto" or "off"'],
    [{ strategy: 1 }, "strategy"],
    [{ tls: { certificate: "a.pem" } }, "certificate and key are set together"],
    [{ tls: { roots: "/nowhere/roots.pem" } }, "tls.roots: ENOENT"],
    [{ tls: { roots: Buffer.from("no"), certificate: Buffer.from("no"), key: Buffer.from("no") } }, "tls: "],
    [{ tls: true }, "tls: not an object"],
  ] as const) {
    expect(made("weir:8081", { onFailure: "allow", ...options })).toThrow(ConfigurationError);
    expect(made("weir:8081", { onFailure: "allow", ...options })).toThrow(text);
  }
});

test.each(["weir", "weir:", "weir:0", "weir:65536", ":8081", "http://weir:8081", "grpc://weir:8081", "ipv4:weir:1", "ipv6:127.0.0.1:1", "unix:", "dns:///weir", "::1:8081", "", 8081, undefined])(
  "C-1: the target %s is refused",
  (target) => {
    expect(made(target, { onFailure: "allow" })).toThrow(/^target: .* is not "host:port"/);
  },
);

test.each(["weir:8081", "dns:8081", "[::1]:8081", "dns:///weir:8081", "dns:weir:8081", "ipv4:127.0.0.1:1,127.0.0.2:1", "ipv6:[::1]:8081", "unix:/run/weir", "unix:weir.sock"])(
  "C-1: the target %s is taken",
  (target) => {
    expect(made(target, { onFailure: "allow" })).not.toThrow();
  },
);

test("C-1: a DNS server in the target needs the variable of grpc-js", () => {
  expect(made("dns://10.0.0.53/weir:8081", { onFailure: "allow" })).toThrow("needs GRPC_NODE_USE_ALTERNATIVE_RESOLVER=true");
});

test("a token without TLS goes to loopback only, unless it is insecure on purpose", () => {
  for (const target of ["weir:8081", "10.0.0.1:8081", "ipv4:127.0.0.1:1,10.0.0.1:1", "127.evil.example:1"]) {
    expect(made(target, { onFailure: "allow", token: "t" })).toThrow(/token: it would be sent in plain text/);
    expect(made(target, { onFailure: "allow", token: "t", insecureToken: true })).not.toThrow();
    expect(made(target, { onFailure: "allow", token: "t", tls: {} })).not.toThrow();
  }
  for (const target of ["localhost:8081", "127.0.0.1:1", "[::1]:1", "unix:/run/weir", "ipv4:127.0.0.1:1"]) {
    expect(made(target, { onFailure: "allow", token: () => "t" })).not.toThrow();
  }
});

test("C-57: no text and no error shows a token", async () => {
  const secret = "s3cret-t0ken";
  expect(made("weir:8081", { onFailure: "allow", token: secret })).not.toThrow(secret);
  expect(made("127.0.0.1:1", { onFailure: "allow", token: `${secret}\n` })).toThrow(/^token: not a text/);
  const logged: unknown[] = [];
  const spy = vi.spyOn(console, "error").mockImplementation((line) => logged.push(line));
  await using server = await startServer((call) => {
    expect(call.metadata.get("authorization")).toEqual([`Bearer ${secret}`]);
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- a status
    throw { code: 16, details: "unknown token" };
  });
  await using weir = new Client(server.target, { timeoutMs: 5000, onFailure: "allow", token: () => Promise.resolve(secret) });
  const { failure } = await weir.allow({ resource: "search" });
  spy.mockRestore();
  expect(failure?.code).toBe("UNAUTHENTICATED");
  expect(logged).toHaveLength(1);
  expect(logged[0]).toMatch(/^weir-ratelimit: ERROR: credentials refused for 1 call;/);
  expect(inspect([weir, failure, logged], { depth: 20, showHidden: true })).not.toContain(secret);
});

test("a token function that fails is an outage, and one that never returns is late", async () => {
  const spy = vi.spyOn(console, "error").mockImplementation(() => undefined);
  await using server = await startServer(() => ({ allowed: true }));
  for (const token of [() => { throw new Error("no"); }, () => Promise.reject(new Error("no")), () => "ü", () => 1 as never]) {
    await using weir = new Client(server.target, { onFailure: "deny", token });
    expect(await weir.allow({ resource: "search" })).toMatchObject({ allowed: false, failure: { code: "UNAUTHENTICATED" } });
  }
  await using weir = new Client(server.target, { onFailure: "deny", token: () => new Promise<string>(() => undefined) });
  expect(await weir.allow({ resource: "search" })).toMatchObject({ allowed: false, failure: { code: "DEADLINE_EXCEEDED" } });
  expect(server.asked).toEqual([]);
  spy.mockRestore();
});

test("C-10: whole numbers beyond 2^53, and others that are no costs, are refused whatever the policy is", async () => {
  await using weir = new Client("127.0.0.1:1", { onFailure: "allow" });
  for (const [question, field] of [
    [{ cost: 2 ** 53 }, "cost"],
    [{ cost: 1.5 }, "cost"],
    [{ cost: -1 }, "cost"],
    [{ cost: Number.NaN }, "cost"],
    [{ cost: "1" }, "cost"],
    [{ resource: 1 }, "resource"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ onFailure: "open" }, "onFailure"],
    [{ consumer: 1 }, "consumer"],
    [{ attributes: { region: 1 } }, "region"],
  ] as const) {
    const asked = { resource: "search", ...question } as unknown as Question;
    for (const client of [weir, new FakeClient({ onFailure: "allow" })]) {
      const error: unknown = await client.allow(asked).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(MistakeError);
      expect(error).toMatchObject({ code: "INVALID_ARGUMENT", field });
    }
  }
});

test("a message above 64 KiB is refused before it is sent", async () => {
  await using server = await startServer(() => ({ allowed: true }));
  await using weir = new Client(server.target, { onFailure: "allow" });
  await expect(weir.allow({ resource: "search", consumer: "x".repeat(65_536) })).rejects.toMatchObject({ code: "OUT_OF_RANGE" });
  expect(server.asked).toEqual([]);
});

test("the message of a mistake has the field that the server names", async () => {
  // google.rpc.Status with a BadRequest whose field is "cost".
  const details = Buffer.concat([
    Buffer.from([0x1a, 0x37, 0x0a, 0x29]), Buffer.from("type.googleapis.com/google.rpc.BadRequest"),
    Buffer.from([0x12, 0x0a, 0x0a, 0x08, 0x0a, 0x04]), Buffer.from("cost"), Buffer.from([0x12, 0x00]),
  ]);
  const { Metadata } = await import("@grpc/grpc-js");
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", details);
  await using server = await startServer(() => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- a status
    throw { code: 3, details: "cost: too large", metadata };
  });
  await using weir = new Client(server.target, { timeoutMs: 5000, onFailure: "allow" });
  await expect(weir.allow({ resource: "search" })).rejects.toMatchObject({
    name: "MistakeError", code: "INVALID_ARGUMENT", field: "cost", message: "INVALID_ARGUMENT: cost: too large",
  });
});
