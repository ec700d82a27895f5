// Nodes that DNS adds. Names of tests begin with the rules of the contract.

import { expect, test, vi } from "vitest";

import { Client } from "../src/index.js";
import { startDns } from "./helpers/dns.js";
import { startNode } from "./helpers/node.js";

// @grpc/grpc-js reads the variable when it is loaded.
vi.hoisted(() => { process.env.GRPC_NODE_USE_ALTERNATIVE_RESOLVER = "true"; });

test("C-26: a node that DNS adds is asked within 5 s after the age of a connection", async () => {
  await using dns = await startDns("127.0.0.1");
  await using first = await startNode({ options: { "grpc.max_connection_age_ms": 500, "grpc.max_connection_age_grace_ms": 500 } });
  await using _second = await startNode({ host: "127.0.0.2", port: first.port });
  await using weir = new Client(`dns://${dns.address}/weir.test:${String(first.port)}`, { onFailure: "error", timeoutMs: 5000 });
  const counted = async () => (await weir.allow({ resource: "a" })).remaining ?? 0;
  expect(await counted()).toBe(1);
  expect(await counted()).toBe(2);
  dns.ips = ["127.0.0.1", "127.0.0.2"];
  // The second node counts its own questions.
  await vi.waitFor(async () => { expect(await counted()).toBe(1); }, { timeout: 6000, interval: 20 });
});
