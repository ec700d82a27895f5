// The programs of this repository that tests start.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
export const CONFIG = fileURLToPath(new URL("weir.yaml", import.meta.url));

/** Returns a program that scripts/test-clients.sh has built. One that is missing fails the test. */
export function program(variable: string, name: string): string {
  const path = process.env[variable] ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "tests", name);
  if (!existsSync(path)) throw new Error(`${path} is missing: set ${variable}, or build it as scripts/test-clients.sh does`);
  return path;
}

export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill(signal);
  await exit;
}

export interface Weir extends AsyncDisposable {
  readonly target: string;
  /** The URL over HTTP. */
  readonly url: string;
  /** Drains and ends. */
  stop(): Promise<void>;
}

/** Returns a port of loopback that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a real `weir` with test/helpers/weir.yaml. */
export async function startWeir(port = 0, httpPort?: number): Promise<Weir> {
  const [listen, http] = [`127.0.0.1:${String(port)}`, `127.0.0.1:${String(httpPort ?? (await freePort()))}`];
  const options = ["serve", "--config", CONFIG, "--listen", listen, "--http", http, "--admin", "127.0.0.1:0", "--drain-delay", "0s"];
  const child = spawn(program("WEIR_BIN", "weir"), options, { stdio: ["ignore", "ignore", "pipe"] });
  for await (const line of createInterface({ input: child.stderr })) {
    const { message, grpc } = JSON.parse(line) as { message: string; grpc: string };
    if (message !== "serving") continue;
    child.stderr.resume();
    return { target: grpc, url: `http://${http}`, stop: () => ended(child, "SIGTERM"), [Symbol.asyncDispose]: () => ended(child, "SIGKILL") };
  }
  throw new Error("weir has ended");
}

export interface Scripted extends AsyncDisposable {
  readonly target: string;
  /** The URL over HTTP. */
  readonly url: string;
  /** Executes a command of crates/scripted. */
  execute(command: object): Promise<Record<string, unknown>>;
}

/** Starts the scripted server. It ends with its stdin. */
export async function startScripted(): Promise<Scripted> {
  const child = spawn(program("WEIR_SCRIPTED_BIN", "weir-scripted"), ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => JSON.parse((await lines.next()).value as string) as Record<string, unknown>;
  const { ready } = (await read()) as { ready: { grpc: string; http: string } };
  return {
    target: ready.grpc,
    url: `http://${ready.http}`,
    execute: async (command) => {
      child.stdin.write(`${JSON.stringify(command)}\n`);
      const reply = await read();
      if ("error" in reply) throw new Error(String(reply.error));
      return reply;
    },
    [Symbol.asyncDispose]: () => ended(child, "SIGKILL"),
  };
}
