// The quickstarts of docs/clients, run as they are written. `npm run build` comes first.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import { Reason } from "../src/gen/weir/v1/rate_limit_pb.js";
import { ask, type Answer } from "./helpers/apps.js";
import { startServer } from "./helpers/server.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const KEY = { "x-api-key": "secret-of-bob" };

function quickstart(page: string): string {
  const text = readFileSync(new URL(`../../../docs/clients/${page}.md`, import.meta.url), "utf8");
  const code = /^The whole program, `server\.mjs`.*?^```js\n(.*?)^```/ms.exec(text)?.[1] ?? "";
  expect(code.split("\n").length - 1, `${page}.md: lines`).toBeLessThan(15);
  return code;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Asks until the program answers as wanted, for at most 10 s. */
async function until(url: string, wanted: (answer: Answer) => boolean): Promise<Answer> {
  for (let tries = 0; ; tries += 1) {
    const answer = await ask(url, { headers: KEY }).catch(() => undefined);
    if (answer !== undefined && wanted(answer)) return answer;
    if (tries > 200) throw new Error(`no such answer: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function ended(program: ChildProcess): Promise<void> {
  if (program.exitCode === null && program.kill()) await once(program, "exit");
}

test.each(["express", "fastify", "hono", "edge"])("C-36, C-37: %s.md: allowed, denied, Weir away, and back", async (page) => {
  let allowed = true;
  const handler = () => ({ allowed, reason: allowed ? Reason.OK : Reason.LIMITED, headers: { RateLimit: "r" } });
  const [weir, port] = [await startServer(handler), await freePort()];
  const env = { ...process.env, WEIR: weir.target, PORT: String(port) };
  const program = spawn(process.execPath, ["--input-type=module", "-e", quickstart(page)], { cwd: ROOT, env, stdio: "inherit" });
  const url = `http://127.0.0.1:${String(port)}/`;
  try {
    expect(await until(url, () => true)).toMatchObject({ status: 200, body: "hello\n", headers: { ratelimit: "r" } });
    allowed = false;
    expect(await ask(url, { headers: KEY })).toMatchObject({ status: 429, headers: { ratelimit: "r" } });
    await weir[Symbol.asyncDispose]();
    const away = await until(url, ({ status }) => status === 200);
    expect(away.headers.ratelimit).toBeUndefined();
    await using _back = await startServer(handler, undefined, Number(weir.target.split(":")[1]));
    await until(url, ({ status }) => status === 429);
  } finally {
    await ended(program);
  }
});
