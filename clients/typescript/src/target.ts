// Targets: where Weir is.

import { isIPv4, isIPv6 } from "node:net";

import { ConfigurationError } from "./errors.js";

/** A target that was checked. @internal */
export interface Target {
  /** The target as it was given. */
  readonly text: string;
  /** The target as gRPC reads it. */
  readonly uri: string;
  /** Whether all addresses are of this machine. */
  readonly loopback: boolean;
}

const FORMS = '"host:port", "dns:///host:port", "dns://SERVER/host:port", "ipv4:…", "ipv6:…" or "unix:PATH"';

/** Reads a target. Throws ConfigurationError. @internal */
export function parseTarget(text: string): Target {
  const given: unknown = text;
  if (typeof given !== "string") throw refused(String(given));
  const scheme = /^(dns|ipv4|ipv6|unix):(.*)$/s.exec(text);
  if (scheme === null) return named(text, `dns:///${text}`, text);
  const [, kind, rest = ""] = scheme;
  switch (kind) {
    case "unix":
      if (rest === "") throw refused(text);
      return { text, uri: text, loopback: true };
    case "dns": {
      // `dns:8081` is a host named "dns".
      if (/^\d+$/.test(rest)) return named(text, `dns:///${text}`, text);
      checkResolver(text, rest);
      return named(text, text, rest.replace(/^\/\/[^/]*\//, ""));
    }
    default: {
      const addresses = rest.split(",");
      const isAddress = kind === "ipv4" ? isIPv4 : isIPv6;
      const hosts = addresses.map((address) => splitPort(address)?.host);
      if (!hosts.every((host) => host !== undefined && isAddress(host))) throw refused(text);
      return { text, uri: text, loopback: hosts.every((host) => isLoopback(host ?? "")) };
    }
  }
}

// Without the variable, grpc-js would ask the resolver of the system without a word. It reads the variable when it is loaded.
function checkResolver(text: string, rest: string): void {
  if (!/^\/\/[^/]+\//.test(rest) || process.env.GRPC_NODE_USE_ALTERNATIVE_RESOLVER === "true") return;
  throw new ConfigurationError(
    `target: ${text} names a DNS server, for which @grpc/grpc-js needs GRPC_NODE_USE_ALTERNATIVE_RESOLVER=true in the environment`,
  );
}

function named(text: string, uri: string, name: string): Target {
  const parts = splitPort(name);
  if (parts === undefined || parts.host === "" || /[/\s]/.test(parts.host)) throw refused(text);
  if (parts.host.includes(":") && !isIPv6(parts.host)) throw refused(text);
  return { text, uri, loopback: isLoopback(parts.host) };
}

// The port is required: gRPC would take 443.
function splitPort(address: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([^\]]*)\]|([^[\]:]*)):(\d{1,5})$/.exec(address);
  if (match === null) return undefined;
  const port = Number(match[3]);
  return port >= 1 && port <= 65_535 ? { host: match[1] ?? match[2] ?? "", port } : undefined;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

function refused(text: string): ConfigurationError {
  return new ConfigurationError(`target: ${JSON.stringify(text)} is not ${FORMS}`);
}
