// Nodes that can be frozen and killed.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { ended } from "./programs.js";

const PROGRAM = fileURLToPath(new URL("node.mjs", import.meta.url));

export interface TestNode extends AsyncDisposable {
  readonly port: number;
  readonly target: string;
  freeze(): void;
  thaw(): void;
  /** Drains and ends. */
  stop(): Promise<void>;
  kill(): Promise<void>;
}

export async function startNode(options: { host?: string; port?: number; options?: Record<string, number> } = {}): Promise<TestNode> {
  const program = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(program.stdout, "data")) as [Buffer];
  const port = Number(line.toString());
  return {
    port,
    target: `${options.host ?? "127.0.0.1"}:${String(port)}`,
    freeze: () => { program.kill("SIGSTOP"); },
    thaw: () => { program.kill("SIGCONT"); },
    stop: () => ended(program, "SIGTERM"),
    kill: () => ended(program, "SIGKILL"),
    [Symbol.asyncDispose]: () => ended(program, "SIGKILL"),
  };
}

export function targetOf(...nodes: TestNode[]): string {
  return `ipv4:${nodes.map(({ target }) => target).join(",")}`;
}
