// The address of the caller. Names of tests begin with the rules of the contract.

import { createServer, type IncomingMessage } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import express from "express";
import { expect, test } from "vitest";

import { weirExpress } from "../src/express.js";
import { clientAddress, ConfigurationError, type AddressOptions } from "../src/index.js";
import { FakeClient } from "../src/testing.js";
import { ask, listening } from "./helpers/apps.js";

function found(options: AddressOptions, peer: string | undefined, forwarded?: string | string[], more: Record<string, string> = {}): string {
  return clientAddress(options)({ socket: { remoteAddress: peer }, headers: { ...more, "x-forwarded-for": forwarded } });
}

test("C-41: without hops it is the peer of the socket", () => {
  expect(found({}, "203.0.113.7", "198.51.100.1, 198.51.100.2")).toBe("203.0.113.7");
  expect(found({ hops: 0 }, "::ffff:203.0.113.7")).toBe("203.0.113.7");
});

test("C-42: hops are counted from the right, over all lines of the header", () => {
  const forged = "1.1.1.1, 2.2.2.2";
  expect(found({ hops: 1 }, "10.0.0.1", `${forged}, 203.0.113.7`)).toBe("203.0.113.7");
  expect(found({ hops: 2 }, "10.0.0.1", `${forged}, 203.0.113.7, 10.0.0.2`)).toBe("203.0.113.7");
  expect(found({ hops: 2 }, "10.0.0.1", [`${forged}, 203.0.113.7`, "10.0.0.2"])).toBe("203.0.113.7");
  expect(found({ hops: 1 }, "10.0.0.1", ["203.0.113.7", "203.0.113.8"])).toBe("203.0.113.8");
});

test("C-42: trusted proxies are left out from the right", () => {
  const trusted = ["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.1"];
  expect(found({ trusted }, "10.0.0.1", "1.1.1.1, 203.0.113.7, 10.9.9.9, 192.0.2.1")).toBe("203.0.113.7");
  expect(found({ trusted }, "::ffff:10.0.0.1", "1.1.1.1, 203.0.113.7, 2001:db8:1::5")).toBe("203.0.113.7");
  expect(found({ trusted }, "203.0.113.9", "1.1.1.1")).toBe("203.0.113.9");
  expect(found({ trusted }, "10.0.0.1", "10.0.0.3, 10.0.0.2")).toBe("10.0.0.3");
});

test("C-43: the first entry and X-Real-IP count for nothing", () => {
  const more = { "x-real-ip": "6.6.6.6", forwarded: "for=6.6.6.6", "cf-connecting-ip": "6.6.6.6" };
  expect(found({ hops: 1 }, "10.0.0.1", "6.6.6.6, 203.0.113.7", more)).toBe("203.0.113.7");
  expect(found({}, "10.0.0.1", "6.6.6.6", more)).toBe("10.0.0.1");
});

test("C-43: Express with its own trust of proxies changes nothing", async () => {
  const weir = new FakeClient();
  const app = express();
  app.set("trust proxy", true);
  app.use(weirExpress(weir, { resource: "api", consumer: clientAddress({ hops: 1 }) }), (request, response) => void response.send(request.ip));
  await using site = await listening(createServer(app as never));
  const headers = { "X-Forwarded-For": ["6.6.6.6", "203.0.113.7"] };
  expect((await ask(site.url, { headers })).body).toBe("6.6.6.6");
  expect(weir.asked).toMatchObject([{ consumer: "203.0.113.7" }]);
});

test.each([
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::ffff:c000:201", "192.0.2.1"],
  ["192.0.2.1:4711", "192.0.2.1"],
  ["[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::"],
  ["[2001:db8::1]", "2001:db8::"],
  ["2001:DB8:0:0:1::", "2001:db8::"],
  ["fe80::1%eth0", "fe80::"],
  ["2001:0db8:0001:0000:0000:0000:0000:0001", "2001:db8:1::"],
])("C-44: %s is %s", (entry, address) => {
  expect(found({ hops: 1 }, "10.0.0.1", entry)).toBe(address);
});

test("C-44: the prefix of IPv6 is 32 to 128", () => {
  expect(found({ ipv6Prefix: 128 }, "2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2:3:4:5:6");
  expect(found({ ipv6Prefix: 56 }, "2001:db8:1:2ff:3:4:5:6")).toBe("2001:db8:1:200::");
  expect(found({ ipv6Prefix: 32 }, "2001:db8:1:2:3:4:5:6")).toBe("2001:db8::");
});

test("C-45: too few entries, or one that is no address, are the peer", () => {
  for (const forwarded of [undefined, "", "203.0.113.7", "unknown, 10.0.0.2", "_hidden, 10.0.0.2", "1.2.3, 10.0.0.2", "0x1.2.3.4, 10.0.0.2", ",", "999.1.1.1,x"]) {
    expect(found({ hops: 2 }, "192.0.2.9", forwarded)).toBe("192.0.2.9");
  }
  expect(found({ trusted: ["192.0.2.0/24"] }, "192.0.2.9", "203.0.113.7, unknown")).toBe("192.0.2.9");
});

test("C-46: a request without a peer is a mistake of the configuration", async () => {
  expect(() => found({}, undefined, "203.0.113.7")).toThrow(ConfigurationError);
  expect(() => clientAddress()(new Request("http://localhost/"))).toThrow(/no peer address/);
  const folder = mkdtempSync(join(tmpdir(), "weir-"));
  const errors: unknown[] = [];
  const server = createServer((incoming: IncomingMessage, response) => {
    try {
      clientAddress({ hops: 1 })(incoming);
    } catch (error) {
      errors.push(error);
    }
    response.end();
  });
  await new Promise<void>((resolve) => void server.listen(join(folder, "socket"), resolve));
  await new Promise((resolve) => request({ socketPath: join(folder, "socket"), agent: false }, resolve).end());
  server.close();
  rmSync(folder, { recursive: true });
  expect(errors).toMatchObject([{ name: "ConfigurationError" }]);
});

test("wrong options fail at once", () => {
  for (const [options, text] of [
    [{ hops: -1 }, "hops: -1 is not a whole number from 0 to 100"],
    [{ hops: 1.5 }, "hops: 1.5"],
    [{ ipv6Prefix: 31 }, "ipv6Prefix: 31 is not a whole number from 32 to 128"],
    [{ hops: 1, trusted: ["10.0.0.0/8"] }, "not both"],
    [{ trusted: ["10.0.0.0/33"] }, "trusted: 10.0.0.0/33"],
    [{ trusted: ["proxy"] }, "trusted: proxy"],
    [{ trusted: ["10.0.0.0/"] }, "trusted: 10.0.0.0/"],
  ] as const) {
    expect(() => clientAddress(options as AddressOptions)).toThrow(text);
  }
});
