// Prints the CPU time of a decision in this process, beside a bare stub and a bare fetch, and what middleware adds: by
// turns, medians of five.
//
//   npm run build && WEIR_BIN=../../target/tests/weir node scripts/cost.mjs

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";

import { openChannel } from "../dist/channel.js";
import { ShouldAllowRequestSchema, ShouldAllowResponseSchema } from "../dist/gen/weir/v1/rate_limit_pb.js";
import { weirExpress } from "../dist/express.js";
import { limited } from "../dist/fetch.js";
import { HttpClient } from "../dist/http.js";
import { Client, clientAddress } from "../dist/index.js";
import { settingsOf } from "../dist/options.js";
import { FakeClient, serve } from "../dist/testing.js";

const CALLS = Number(process.env.CALLS ?? 4000);
const TURNS = 5;
const PATH = "/weir.v1.RateLimitService/ShouldAllow";
const QUESTION = { resource: "a", consumer: "bob" };
const OPTIONS = { onFailure: "error", timeoutMs: 1000, telemetry: "off" };

async function cpu(call, inFlight) {
  const loop = async () => {
    for (let done = 0; done < CALLS / inFlight; done += 1) await call();
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: inFlight }, loop));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

const median = (numbers) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];

async function compare(what, bare, ours) {
  for (const inFlight of [1, 64]) {
    const [bares, all] = [[], []];
    for (let turn = 0; turn <= TURNS; turn += 1) {
      const both = [await cpu(bare, inFlight), await cpu(ours, inFlight)];
      if (turn === 0) continue;
      bares.push(both[0]);
      all.push(both[1]);
    }
    const [one, other] = [median(bares), median(all)];
    console.log(`${what}, ${inFlight} in flight: ${other.toFixed(0)} µs beside ${one.toFixed(0)}: ${(other / one).toFixed(2)} times`);
  }
}

async function added(what, bare, ours) {
  const turns = [];
  for (let turn = 0; turn <= TURNS; turn += 1) {
    turns.push([await cpu(bare, 1), await cpu(ours, 1), await cpu(() => fake.allow({ ...QUESTION, headers: true }), 1)]);
    fake.asked.length = 0;
  }
  const beside = median(turns.slice(1).map(([one, other, allow]) => other - one - allow));
  console.log(`middleware of ${what}: ${beside.toFixed(0)} µs beside allow`);
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const folder = mkdtempSync(join(tmpdir(), "weir-cost-"));
const port = await freePort();
writeFileSync(join(folder, "weir.yaml"), `
strategies: { all: { limits: [{ name: all, per: [], token_bucket: { rate: 1_000_000/1s, burst: 1_000_000 } }] } }
resources: [{ match: a, strategy: all }]
http: { listen: "127.0.0.1:${port}" }
`);
const server = await serve(process.env.WEIR_BIN ?? "weir", join(folder, "weir.yaml"));
const channel = openChannel(settingsOf(server.address, OPTIONS));
const client = new Client(server.address, OPTIONS);
const encode = (question) => Buffer.from(toBinary(ShouldAllowRequestSchema, create(ShouldAllowRequestSchema, question)));
const decode = (bytes) => fromBinary(ShouldAllowResponseSchema, bytes);
await compare("gRPC", () => new Promise((resolve, reject) => {
  const options = { deadline: Date.now() + 1000 };
  channel.makeUnaryRequest(PATH, encode, decode, QUESTION, new Metadata(), options, (error) => { if (error) reject(error); else resolve(); });
}), () => client.allow(QUESTION));
channel.close();
await client.close();

const url = `http://127.0.0.1:${port}`;
const http = new HttpClient(url, OPTIONS);
const headers = { "content-type": "application/json", "connect-protocol-version": "1" };
await compare("HTTP", async () => {
  const signal = AbortSignal.timeout(1000);
  const response = await fetch(url + PATH, { method: "POST", headers, body: JSON.stringify(QUESTION), signal });
  await response.json();
}, () => http.allow(QUESTION));
await server.close();

// What a middleware adds to a request beside `allow`, with a fake.
const fake = new FakeClient();
fake.script.allow(undefined, { headers: { RateLimit: '"all";r=9;t=1', "RateLimit-Policy": '"all";q=10;w=1' } });
const consumer = () => "bob";
const handler = () => new Response("hello");
const limitedHandler = limited(handler, { client: fake, resource: "a", consumer });
const request = new Request("http://localhost/");
const middleware = weirExpress(fake, { resource: "a", consumer: clientAddress({ hops: 1 }) });
const incoming = { method: "GET", headers: { "x-forwarded-for": "203.0.113.7" }, socket: { remoteAddress: "192.0.2.1" } };
await added("fetch", () => handler(request), () => limitedHandler(request));
await added("Express", () => new ServerResponse(incoming), () => new Promise((resolve, reject) => {
  middleware(incoming, new ServerResponse(incoming), (error) => { if (error) reject(error); else resolve(); });
}));
rmSync(folder, { recursive: true });
