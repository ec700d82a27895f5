// The options that all clients have. Wrong ones fail at once, in the constructor. Nothing here needs Node or gRPC.

import type { Token } from "./bearer.js";
import { ConfigurationError } from "./errors.js";
import { isPolicy, isTimeout, LONGEST_TIMEOUT_MS, type Policy } from "./limiter.js";

/** The options that all clients have. */
export interface CommonOptions {
  /** What an outage answers: `"allow"`, `"deny"`, or `"error"`, which throws. There is no default. */
  onFailure: Policy;
  /** The time for a decision, connecting included. 100 if not set. */
  timeoutMs?: number;
  /** A token, or a function that returns one for each call. It is sent as `authorization: Bearer …`. */
  token?: string | (() => string | Promise<string>);
  /** Allows a token without TLS to a target that is not loopback. */
  insecureToken?: boolean;
  /** Whether to stop asking while no server answers. True if not set. */
  breaker?: boolean;
  /** The strategy of questions that name none. */
  strategy?: string;
  /** `"auto"`, the default: traces and metrics, if the OpenTelemetry API is installed. `"off"`: none. */
  telemetry?: "auto" | "off";
}

/** Options that were checked. @internal */
export interface CommonSettings {
  readonly onFailure: Policy;
  readonly timeoutMs: number;
  readonly token: Token | undefined;
  readonly breaker: boolean;
  readonly strategy: string | undefined;
  readonly telemetry: boolean;
}

/** The names of the options that all clients have. @internal */
export const COMMON_NAMES = ["onFailure", "timeoutMs", "token", "insecureToken", "breaker", "strategy", "telemetry"] as const;

const DEFAULT_TIMEOUT_MS = 100;

/** Checks the options that all clients have, and that there are no others than these names. Throws ConfigurationError. @internal */
export function commonSettings(options: CommonOptions, names: readonly string[]): CommonSettings {
  const given: unknown = options;
  if (typeof given !== "object" || given === null) {
    throw new ConfigurationError('options: required, with onFailure: "allow", "deny" or "error"');
  }
  checkNames(given, names);
  const { onFailure, timeoutMs = DEFAULT_TIMEOUT_MS, token, strategy, telemetry = "auto" } = options;
  for (const name of ["insecureToken", "breaker"] as const) checkBoolean(name, options[name]);
  if (!isPolicy(onFailure)) {
    const text = "onFailure" in given ? `${String(onFailure)} is not` : "required:";
    throw new ConfigurationError(`onFailure: ${text} "allow", "deny" or "error"`);
  }
  if (!isTimeout(timeoutMs)) {
    const bound = `a number above 0 and at most ${String(LONGEST_TIMEOUT_MS)}`;
    throw new ConfigurationError(`timeoutMs: ${String(timeoutMs)} is not ${bound}`);
  }
  checkOneOf("telemetry", telemetry, ["auto", "off"]);
  if (strategy !== undefined) checkOneOf("typeof strategy", typeof strategy, ["string"]);
  return { onFailure, timeoutMs, token, breaker: options.breaker ?? true, strategy, telemetry: telemetry === "auto" };
}

// A misspelled option would be left out without a word.
function checkNames(options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new ConfigurationError(`${unknown}: not one of the options ${names.join(", ")}`);
}

/** Throws ConfigurationError if a value is set and no boolean. @internal */
export function checkBoolean(name: string, value: unknown): void {
  if (value !== undefined) checkOneOf(name, value, [true, false]);
}

function checkOneOf(name: string, value: unknown, allowed: readonly unknown[]): void {
  if (allowed.includes(value)) return;
  throw new ConfigurationError(`${name}: ${String(value)} is not ${allowed.map((one) => JSON.stringify(one)).join(" or ")}`);
}
