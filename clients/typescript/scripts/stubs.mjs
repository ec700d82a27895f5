// Makes the stubs in src/gen, or in the folder of the first argument, from the protos of the repository.
//
// protoc is that of $PROTOC, of grpcio-tools in .cache/clients (scripts/install-clients.sh), or the one in the path.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = resolve(here, "../..");
const out = resolve(process.argv[2] ?? join(here, "src/gen"));
const python = join(root, ".cache/clients/python/bin/python");

function protoc() {
  if (process.env.PROTOC) return [process.env.PROTOC];
  return existsSync(python) ? [python, "-m", "grpc_tools.protoc"] : ["protoc"];
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const [command, ...first] = protoc();
execFileSync(command, [
  ...first,
  `-I${join(root, "proto")}`,
  `-I${join(here, "proto")}`,
  `--plugin=protoc-gen-es=${join(here, "node_modules/.bin/protoc-gen-es")}`,
  `--es_out=${out}`,
  "--es_opt=target=ts,import_extension=js",
  "weir/v1/rate_limit.proto",
  "weir/v1/leases.proto",
  "details.proto",
], { stdio: "inherit" });
