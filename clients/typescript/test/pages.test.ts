// The quickstarts of docs/clients, run as they are written. `npm run build` comes first.

import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { expect, test } from "vitest";

import { ask, type Answer } from "./helpers/apps.js";
import { ended, freePort, program as pathOf, startWeir } from "./helpers/programs.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const KEY = { "x-api-key": "secret-of-bob" };

function textOf(page: string): string {
  return readFileSync(new URL(`../../../docs/clients/${page}.md`, import.meta.url), "utf8");
}

/** Returns the blocks of a page in a language. */
function blocks(page: string, language: string): string[] {
  return [...textOf(page).matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "gms"))].map(([, code]) => code ?? "");
}

function quickstart(page: string): string {
  const text = textOf(page);
  const code = /^The whole program, `server\.mjs`.*?^```js\n(.*?)^```/ms.exec(text)?.[1] ?? "";
  expect(code.split("\n").length - 1, `${page}.md: lines`).toBeLessThan(15);
  return code;
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

test.each(["express", "fastify", "hono", "edge"])("C-36, C-37: %s.md: allowed, denied, Weir stopped, and back", async (page) => {
  const [weir, port] = [await startWeir(), await freePort()];
  const env = { ...process.env, WEIR: weir.target, PORT: String(port) };
  const program = spawn(process.execPath, ["--input-type=module", "-e", quickstart(page)], { cwd: ROOT, env, stdio: "inherit" });
  const url = `http://127.0.0.1:${String(port)}/`;
  try {
    expect(await until(url, () => true)).toMatchObject({ status: 200, body: "hello\n", headers: { "x-ratelimit-remaining": "0" } });
    const denied = await ask(url, { headers: KEY });
    expect(denied).toMatchObject({ status: 429, headers: { "x-ratelimit-remaining": "0" } });
    expect(Number(denied.headers["retry-after"])).toBeGreaterThan(3000);
    expect(denied.body).toMatch(/^Rate limit exceeded/);
    await weir.stop();
    const away = await until(url, ({ status }) => status === 200);
    expect(away.headers["x-ratelimit-remaining"]).toBeUndefined();
    await using _back = await startWeir(Number(weir.target.split(":")[1]));
    await until(url, ({ status }) => status === 429);
  } finally {
    await ended(program, "SIGKILL");
  }
});

test("C-37, S-40: edge.md: the program for edge runtimes, allowed, denied, Weir stopped, and back", async () => {
  const [weir, port] = [await startWeir(), await freePort()];
  const edge = blocks("edge", "js").find((code) => code.includes("HttpClient")) ?? "";
  expect(edge.split("\n").length - 1).toBeLessThan(15);
  // On Node, this is what serves an export of the form of Workers.
  const program = `
    import { serve } from "@hono/node-server";
    ${edge.replace("https://weir.example.com:8082", weir.url).replace("export default", "const program =")}
    serve({ fetch: program.fetch, port: ${String(port)} });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { cwd: ROOT, stdio: "inherit" });
  const url = `http://127.0.0.1:${String(port)}/`;
  try {
    expect(await until(url, () => true)).toMatchObject({ status: 200, body: "hello\n", headers: { "x-ratelimit-remaining": "0" } });
    expect(await ask(url, { headers: KEY })).toMatchObject({ status: 429, headers: { "x-ratelimit-remaining": "0" } });
    expect(await ask(url)).toMatchObject({ status: 403 });
    await weir.stop();
    expect((await until(url, ({ status }) => status === 200)).headers["x-ratelimit-remaining"]).toBeUndefined();
    await using _back = await startWeir(0, Number(new URL(weir.url).port));
    await until(url, ({ status }) => status === 429);
  } finally {
    await ended(child, "SIGKILL");
  }
});

/** What the pages do not show: the program around their code, and what it must do. */
const CHECKS = {
  "typescript-testing": ["", ""],
  failure: [
    `import { expect, test } from "vitest";
     import { MistakeError } from "weir-ratelimit";
     import { FakeClient } from "weir-ratelimit/testing";`,
    `test("failure", async () => {
       const weir = new FakeClient({ onFailure: "allow" });
       expect([await mayLogIn(weir, "bob"), await maySearch(weir, "bob")]).toEqual([true, true]);
       weir.script.deny();
       expect([await mayLogIn(weir, "bob"), await maySearch(weir, "bob")]).toEqual([false, false]);
       weir.script.away();
       expect([await mayLogIn(weir, "bob"), await maySearch(weir, "bob")]).toEqual([false, false]);
       weir.script.away(undefined, { code: "DEADLINE_EXCEEDED" });
       expect([await mayLogIn(weir, "bob"), await maySearch(weir, "bob")]).toEqual([false, true]);
       weir.script.mistake("NOT_FOUND");
       await expect(mayLogIn(weir, "bob")).rejects.toThrow(MistakeError);
       await expect(maySearch(weir, "bob")).rejects.toThrow(MistakeError);
     });`,
  ],
  budgets: [
    `import { expect, test } from "vitest";
     import { FakeClient } from "weir-ratelimit/testing";`,
    `test("budgets", async () => {
       const weir = new FakeClient();
       async function* askModel() { yield "a"; yield "b"; if (fails) throw new Error("model"); }
       let fails = false;
       expect(await answer(weir, "bob", askModel)).toBe("ab");
       fails = true;
       await expect(answer(weir, "bob", askModel)).rejects.toThrow("model");
       expect(weir.meters.map(({ settled }) => settled)).toEqual([{ output: 2 }, { output: 2 }]);
       weir.script.deny("bob");
       await expect(answer(weir, "bob", askModel)).rejects.toThrow(BudgetRefusedError);
     });`,
  ],
  addresses: [
    `import { once } from "node:events";
     import express from "express";
     import { expect, test } from "vitest";
     import { FakeClient } from "weir-ratelimit/testing";
     const [app, weir] = [express(), new FakeClient()];`,
    `test("addresses", async () => {
       const server = app.get("/", (_, response) => void response.send("hello")).listen(0, "127.0.0.1");
       await once(server, "listening");
       const headers = { "X-Forwarded-For": "6.6.6.6, 203.0.113.9, 10.0.0.2" };
       await fetch("http://127.0.0.1:" + String(server.address().port), { headers });
       server.close();
       expect(weir.asked.map(({ consumer }) => consumer)).toEqual(["203.0.113.9"]);
     });`,
  ],
};

test("S-40: the pages about tests, failure, budgets and addresses", async () => {
  // Below this package, so that its own name and that of vitest are found.
  const folder = mkdtempSync(join(ROOT, "dist", "page-"));
  const path = `${dirname(pathOf("WEIR_BIN", "weir"))}${delimiter}${process.env.PATH ?? ""}`;
  try {
    writeFileSync(join(folder, "weir.yaml"), blocks("typescript-testing", "yaml").join(""));
    // The settings of vitest are those of this package.
    mkdirSync(join(folder, "test"));
    for (const [page, [before, after]] of Object.entries(CHECKS)) {
      writeFileSync(join(folder, `test/${page}.test.ts`), [before, ...blocks(page, "ts"), after].join("\n"));
    }
    const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--root", folder, "--reporter", "json"];
    const { stdout } = await promisify(execFile)(process.execPath, vitest, { cwd: folder, env: { ...process.env, PATH: path } });
    expect(JSON.parse(stdout)).toMatchObject({ success: true, numPassedTests: 6, numTotalTests: 6 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
