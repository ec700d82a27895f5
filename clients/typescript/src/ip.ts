// Addresses as text: what proxies and sockets write, in one form.

import { isIPv4, isIPv6 } from "node:net";

/** An address without port, brackets and zone. IPv4 in IPv6 is IPv4. @internal */
export interface Ip {
  readonly text: string;
  readonly family: "ipv4" | "ipv6";
}

/** Reads an address, also with a port, brackets or a zone. Returns undefined for anything else. @internal */
export function parseIp(entry: string): Ip | undefined {
  const text = withoutPort(entry.trim()).replace(/%.*$/s, "");
  if (isIPv4(text)) return { text, family: "ipv4" };
  if (!isIPv6(text)) return undefined;
  const groups = groupsOf(text);
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (mapped) return { text: groups.slice(6).flatMap((group) => [group >> 8, group & 255]).join("."), family: "ipv4" };
  return { text: textOf(groups), family: "ipv6" };
}

/** Returns the address, of IPv6 the first address of its network. @internal */
export function network({ text, family }: Ip, prefix: number): string {
  if (family === "ipv4") return text;
  return textOf(groupsOf(text).map((group, index) => group & mask(prefix - 16 * index)));
}

function withoutPort(entry: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(entry);
  if (bracketed !== null) return bracketed[1] ?? "";
  return entry.replace(/^([\d.]+):\d{1,5}$/, "$1");
}

function mask(bits: number): number {
  const kept = Math.min(16, Math.max(0, bits));
  return (0xffff << (16 - kept)) & 0xffff;
}

// The URL standard writes IPv6 in the short form of RFC 5952, without dots.
function textOf(groups: readonly number[]): string {
  return canonical(groups.map((group) => group.toString(16)).join(":"));
}

function canonical(text: string): string {
  return new URL(`http://[${text}]/`).hostname.slice(1, -1);
}

function groupsOf(text: string): number[] {
  const [head = "", tail] = canonical(text).split("::");
  const [left, right] = [numbersOf(head), numbersOf(tail ?? "")];
  const zeros = new Array<number>(8 - left.length - right.length).fill(0);
  return tail === undefined ? left : [...left, ...zeros, ...right];
}

function numbersOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}
