// The OpenTelemetry API of Node, if it is installed.

import { createRequire } from "node:module";

import { Telemetry, type Api } from "./telemetry.js";

/** Returns a recorder, or undefined if the API is not installed. @internal */
export function installedTelemetry(): Telemetry | undefined {
  try {
    return new Telemetry(createRequire(import.meta.url)("@opentelemetry/api") as Api);
  } catch {
    return undefined;
  }
}
