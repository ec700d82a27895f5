// The address of the caller of a request, as a consumer. Only what proxies have written that are known to be there counts.

import { BlockList, isIP } from "node:net";

import { ConfigurationError } from "./errors.js";
import { network, parseIp, type Ip } from "./ip.js";

/** How the address of a caller is found. Without options: the peer of the socket. */
export interface AddressOptions {
  /** How many proxies stand in front of this program, each of which appends to X-Forwarded-For. 0 if not set. */
  hops?: number;
  /** The addresses of the proxies, such as `"10.0.0.0/8"`: the caller is the last entry that is none of them. */
  trusted?: string[];
  /** How much of an IPv6 address is the consumer: 32 to 128, 64 if not set. */
  ipv6Prefix?: number;
}

interface Asked {
  readonly peer: string | undefined;
  readonly forwarded: string;
}

/** Returns a function that finds the address of the caller, for the option `consumer` of a middleware. */
export function clientAddress(options: AddressOptions = {}): (request: unknown) => string {
  const { hops = 0, trusted = [], ipv6Prefix = 64 } = options;
  checkWhole("hops", hops, 0, 100);
  checkWhole("ipv6Prefix", ipv6Prefix, 32, 128);
  if (hops > 0 && trusted.length > 0) throw new ConfigurationError("trusted: set it or hops, not both");
  const proxies = trusted.length > 0 ? blockListOf(trusted) : undefined;
  return (request) => {
    const { peer, forwarded } = askedBy(request);
    const socket = parseIp(peer ?? "");
    if (socket === undefined) {
      throw new ConfigurationError("clientAddress: the request has no peer address; give the middleware another consumer function");
    }
    const found = proxies === undefined ? byHops(forwarded, hops) : byTrust(socket, forwarded, proxies);
    return network(found ?? socket, ipv6Prefix);
  };
}

// Entries are counted from the right: the first ones are whatever the caller has written.
function byHops(forwarded: string, hops: number): Ip | undefined {
  if (hops === 0) return undefined;
  const entry = forwarded.split(",").at(-hops);
  return entry === undefined ? undefined : parseIp(entry);
}

function byTrust(socket: Ip, forwarded: string, proxies: BlockList): Ip | undefined {
  let last = socket;
  for (const entry of forwarded.split(",").reverse()) {
    if (!proxies.check(last.text, last.family)) return last;
    const address = parseIp(entry);
    if (address === undefined) return undefined;
    last = address;
  }
  return last;
}

/** Finds the socket and the header in a request of Node, Express, Fastify, or Hono on Node. */
function askedBy(request: unknown): Asked {
  const message = field(field(request, "env"), "incoming") ?? field(request, "raw") ?? request;
  const header = field(field(message, "headers"), "x-forwarded-for");
  const peer = field(field(message, "socket"), "remoteAddress");
  return {
    peer: typeof peer === "string" ? peer : undefined,
    forwarded: Array.isArray(header) ? header.join(",") : typeof header === "string" ? header : "",
  };
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function checkWhole(name: string, value: unknown, least: number, most: number): void {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return;
  throw new ConfigurationError(`${name}: ${String(value)} is not a whole number from ${String(least)} to ${String(most)}`);
}

function blockListOf(trusted: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of trusted) {
    const [address = "", bits] = entry.split("/");
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (family === 0 || !(prefix <= most)) {
      throw new ConfigurationError(`trusted: ${entry} is not an address or a network, such as "10.0.0.0/8"`);
    }
    list.addSubnet(address, prefix, family === 4 ? "ipv4" : "ipv6");
  }
  return list;
}
