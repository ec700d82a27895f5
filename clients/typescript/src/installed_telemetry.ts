// The OpenTelemetry API of Node, if it is installed.

import { createRequire } from "node:module";

import type { Counter, MeterProvider } from "@opentelemetry/api";

import { Telemetry, type Api } from "./telemetry.js";

/** The recorder of a client on Node, which alone has meters. @internal */
export class NodeTelemetry extends Telemetry {
  readonly #metrics: Api["metrics"];
  #provider: MeterProvider | undefined;
  #settlements: Counter | undefined;

  constructor(api: Api) {
    super(api);
    this.#metrics = api.metrics;
  }

  /** Counts what has become of a settlement. */
  settlement(event: string): void {
    const provider = this.#metrics.getMeterProvider();
    if (this.#provider !== provider) this.#settlements = undefined;
    this.#provider = provider;
    this.#settlements ??= provider.getMeter("weir-ratelimit").createCounter("weir.client.settlements", { description: "Settlements by event" });
    this.#settlements.add(1, { event });
  }
}

/** Returns a recorder, or undefined if the API is not installed. @internal */
export function installedTelemetry(): NodeTelemetry | undefined {
  try {
    return new NodeTelemetry(createRequire(import.meta.url)("@opentelemetry/api") as Api);
  } catch {
    return undefined;
  }
}
