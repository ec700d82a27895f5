// The client against nodes that freeze, restart and move. Names of tests begin with the rules of the contract.

import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";

import { ServerCredentials } from "@grpc/grpc-js";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

import { openChannel } from "../src/channel.js";
import { Client, type Decision, type Options } from "../src/index.js";
import { settingsOf } from "../src/options.js";
import { startNode, targetOf, type TestNode } from "./helpers/node.js";
import { startServer } from "./helpers/server.js";

// The two nodes of all tests. A test that ends one starts it again, on its port.
let one: TestNode;
let two: TestNode;
beforeAll(async () => { [one, two] = await Promise.all([startNode(), startNode()]); });
afterAll(async () => { await Promise.all([one.kill(), two.kill()]); });

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function connected(target: string, options: Partial<Options> = {}): Promise<Client> {
  const weir = new Client(target, { onFailure: "allow", ...options });
  expect(await weir.ready(10_000)).toBe(true);
  return weir;
}

/** Waits until a node is asked. Of calls at once, each node gets its share. */
async function used(weir: Client, node: TestNode): Promise<void> {
  const asked = async () => Promise.all([1, 2, 3].map(() => weir.allow({ resource: "a" })));
  await vi.waitFor(async () => { expect((await asked()).map(({ limit }) => limit)).toContain(node.port); }, { timeout: 20_000, interval: 50 });
}

interface Load {
  /** Ends the load and returns what was answered, with the time in ms at which each call began. */
  stop(): Promise<{ at: number; decision: Decision }[]>;
}

/** Calls at a rate, whether or not answers come. */
function load(weir: Client, perSecond: number): Load {
  const started = performance.now();
  const calls: Promise<{ at: number; decision: Decision }>[] = [];
  const timer = setInterval(() => {
    const at = performance.now() - started;
    while (calls.length < (at * perSecond) / 1000) calls.push(weir.allow({ resource: "a" }).then((decision) => ({ at, decision })));
  }, 1000 / perSecond);
  return { stop: () => { clearInterval(timer); return Promise.all(calls); } };
}

test("C-21, C-22, C-23: the options of the channel", () => {
  const options = (more: Partial<Options>) => {
    const channel = openChannel(settingsOf("weir:8081", { onFailure: "allow", ...more })).getChannel();
    return (channel as unknown as { internalChannel: { options: Record<string, unknown> } }).internalChannel.options;
  };
  expect(options({})).toMatchObject({
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
    "grpc.dns_min_time_between_resolutions_ms": 1000,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 2000,
    "grpc.keepalive_permit_without_calls": 1,
  });
  expect(options({})["grpc.service_config"]).toMatch(/outlier_detection.*round_robin/);
  expect(options({})["grpc.service_config"]).not.toMatch(/retry/i);
  expect(options({ ejection: false })["grpc.service_config"]).toBe('{"loadBalancingConfig":[{"round_robin":{}}]}');
});

describe("one node", () => {
  test("C-14: an answer that arrived while the process was stalled counts", async () => {
    await using weir = await connected(one.target, { breaker: false });
    await weir.allow({ resource: "a", timeoutMs: 5000 });
    let counted = 0;
    for (let call = 0; call < 10; call += 1) {
      const asked = weir.allow({ resource: "a" });
      // The question leaves before the stall.
      await setImmediate();
      await setImmediate();
      const stalled = performance.now() + 300;
      while (performance.now() < stalled);
      if ((await asked).source === "weir") counted += 1;
    }
    expect(counted).toBeGreaterThanOrEqual(9);
  });

  test("C-20: calls at once share one connection, made at the first of them", async () => {
    let connections = 0;
    const proxy = createServer((socket) => {
      connections += 1;
      const onward = connect(one.port, "127.0.0.1");
      socket.pipe(onward).pipe(socket);
      for (const end of [socket, onward]) end.on("error", () => { socket.destroy(); onward.destroy(); });
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const weir = new Client(`127.0.0.1:${String((proxy.address() as AddressInfo).port)}`, { onFailure: "error", timeoutMs: 5000 });
    await sleep(50);
    expect(connections).toBe(0);
    await Promise.all(Array.from({ length: 50 }, () => weir.allow({ resource: "a" })));
    expect(connections).toBe(1);
    await weir.close();
    proxy.close();
  });

  test("C-25: with the only node gone and back, answers are Weir's within 2 s", async () => {
    await using weir = await connected(one.target, { timeoutMs: 500 });
    await one.kill();
    const calls = load(weir, 50);
    await sleep(2500);
    one = await startNode({ port: one.port });
    const returned = performance.now();
    await vi.waitFor(async () => { expect((await weir.allow({ resource: "a" })).source).toBe("weir"); }, { timeout: 5000, interval: 5 });
    expect(performance.now() - returned).toBeLessThan(2000);
    const answers = await calls.stop();
    expect(answers.some(({ decision }) => decision.failure?.message === "UNAVAILABLE: the breaker is open")).toBe(true);
  });

});

describe("two nodes", () => {
  test("C-24: one that hangs is left out, and used again when it is well", async () => {
    await using weir = await connected(targetOf(one, two), { timeoutMs: 300 });
    await used(weir, one);
    one.freeze();
    const calls = load(weir, 50);
    // It is tried again after 4 s.
    await sleep(4000);
    one.thaw();
    const answers = await calls.stop();
    const later = answers.filter(({ at }) => at >= 2000);
    const late = later.filter(({ decision }) => decision.source === "policy");
    expect(later.length).toBeGreaterThan(70);
    expect(late.length).toBeLessThan(later.length * 0.05);
    // An ejection lasts 4 to 10 s.
    await used(weir, one);
  });

  test("C-24: mistakes alone leave both in use", async () => {
    await using weir = await connected(targetOf(one, two), { timeoutMs: 5000 });
    const started = performance.now();
    while (performance.now() - started < 1000) await weir.allow({ resource: "a", consumer: "wrong" }).catch(() => undefined);
    for (let call = 0; call < 40; call += 1) expect((await weir.allow({ resource: "a" })).source).toBe("weir");
  });

  test("C-30: one of two that hangs never opens the breaker, in bursts of 64", async () => {
    await using weir = await connected(targetOf(one, two), { ejection: false, timeoutMs: 1000 });
    await used(weir, one);
    await used(weir, two);
    one.freeze();
    for (let burst = 0; burst < 3; burst += 1) {
      const answers = await Promise.all(Array.from({ length: 64 }, () => weir.allow({ resource: "a" })));
      expect(answers.some(({ source }) => source === "weir")).toBe(true);
      expect(answers.some(({ failure }) => failure?.message.includes("breaker") === true)).toBe(false);
    }
    one.thaw();
  });
});

test("TLS: own roots, a client's certificate, a wrong name, and a token", async () => {
  const pem = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] },
    ],
  });
  const [key, cert] = [Buffer.from(pem.private), Buffer.from(pem.cert)];
  const tokens: unknown[] = [];
  const credentials = ServerCredentials.createSsl(cert, [{ private_key: key, cert_chain: cert }], true);
  await using server = await startServer((call) => {
    tokens.push(...call.metadata.get("authorization"));
    return { allowed: true };
  }, credentials);
  const port = server.target.split(":")[1] ?? "";
  const tls = { roots: cert, certificate: cert, key };
  const asked = async (host: string, options: Partial<Options>) => {
    await using weir = new Client(`${host}:${port}`, { onFailure: "deny", timeoutMs: 5000, ...options });
    return (await weir.allow({ resource: "a" })).source;
  };
  expect(await asked("localhost", { tls, token: "t1" })).toBe("weir");
  expect(tokens).toEqual(["Bearer t1"]);
  expect(await asked("127.0.0.1", { tls, token: "t2" })).toBe("policy");
  expect(await asked("localhost", { tls: { roots: cert }, token: "t3" })).toBe("policy");
  expect(await asked("localhost", { tls: { certificate: cert, key }, token: "t4" })).toBe("policy");
  expect(await asked("localhost", {})).toBe("policy");
  expect(tokens).toEqual(["Bearer t1"]);
});
