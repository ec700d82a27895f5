// The package as it is published: `npm run build` comes first. Names of tests begin with the rules of the contract.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";

import { rolldown } from "rolldown";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Manifest {
  exports: Record<string, string>;
  dependencies: Record<string, string>;
  version: string;
}
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;

function run(code: string, ...flags: string[]): string {
  return execFileSync(process.execPath, [...flags, "-e", code], { cwd: ROOT, encoding: "utf8" });
}

/** The modules that a program has loaded after `imports`, without those of this package. */
function loaded(imports: string): string[] {
  const code = `
    import { register } from "node:module";
    const seen = new Set();
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (url) => seen.add(url));
    port1.unref();
    register("data:text/javascript," + encodeURIComponent(\`
      let port;
      export function initialize(data) { port = data.port; }
      export async function resolve(name, context, next) {
        const found = await next(name, context);
        port.postMessage(found.url);
        return found;
      }\`), { data: { port: port2 }, transferList: [port2] });
    await ${imports};
    for (const path of Object.keys((await import("node:module")).default._cache ?? {})) seen.add(path);
    await new Promise((resolve) => setTimeout(resolve, 50));
    console.log(JSON.stringify([...seen]));`;
  const urls = JSON.parse(run(code, "--input-type=module")) as string[];
  const packages = urls.map((url) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? (url.startsWith("node:") ? url : undefined));
  return [...new Set(packages.filter((name) => name !== undefined))];
}

test("C-55: importing loads no framework and no OpenTelemetry", () => {
  const names = loaded('import("weir-ratelimit")');
  expect(names).toEqual(expect.arrayContaining(["@grpc/grpc-js", "@bufbuild/protobuf"]));
  expect(names.filter((name) => /express|fastify|hono|opentelemetry/.test(name))).toEqual([]);
});

test.each(["express", "fastify", "hono", "fetch", "http"])("C-55: weir-ratelimit/%s loads no framework, and no gRPC", (entry) => {
  expect(loaded(`import("weir-ratelimit/${entry}")`).filter((name) => !name.startsWith("node:module"))).toEqual([]);
});

test("weir-ratelimit/http has at most 15 kB minified, and imports nothing of Node", async () => {
  const external = ["@opentelemetry/api"];
  const bundle = await rolldown({ input: join(ROOT, "dist/http.js"), external, platform: "browser" });
  const { output } = await bundle.generate({ minify: true });
  const [chunk, ...others] = output.filter((one) => one.type === "chunk");
  expect(others).toEqual([]);
  expect([chunk?.imports, chunk?.dynamicImports]).toEqual([[], external]);
  expect(Buffer.byteLength(chunk?.code ?? "")).toBeLessThan(15_000);
});

test("CommonJS programs can load every entry", () => {
  for (const entry of Object.keys(manifest.exports).filter((name) => name !== "./package.json")) {
    const name = join("weir-ratelimit", entry);
    expect(run(`console.log(Object.keys(require("${name}")).length > 0)`, "--no-warnings").trim()).toBe("true");
  }
});

test("every entry has its types", () => {
  for (const file of Object.values(manifest.exports).filter((name) => name.endsWith(".js"))) {
    expect(existsSync(join(ROOT, file.replace(".js", ".d.ts")))).toBe(true);
  }
});

test("the stubs are those of the protos of this repository", () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-stubs-"));
  execFileSync(process.execPath, [join(ROOT, "scripts/stubs.mjs"), folder], { stdio: "pipe" });
  const files = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  // A comment of a proto is no reason to make them again.
  const code = (file: string) => readFileSync(file, "utf8").replace(/^ *\/\*\*[^]*?\*\/\n/gm, "");
  const texts = (path: string) => new Map(files(path).map((file) => [relative(path, file), code(file)]));
  const [made, kept] = [texts(folder), texts(join(ROOT, "src/gen"))];
  rmSync(folder, { recursive: true });
  expect([...kept.keys()].sort(), "npm run stubs").toEqual([...made.keys()].sort());
  for (const [name, text] of made) expect(kept.get(name) === text, `${name}: npm run stubs`).toBe(true);
});

test("the lock file names no registry", () => {
  expect(readFileSync(join(ROOT, "package-lock.json"), "utf8")).not.toMatch(/"resolved": "http/);
});
