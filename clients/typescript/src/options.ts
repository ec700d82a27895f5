// Options of a client. Wrong ones fail at once, in the constructor.

import { ConfigurationError } from "./errors.js";
import { isPolicy, isTimeout, LONGEST_TIMEOUT_MS, type Policy } from "./limiter.js";
import { parseTarget, type Target } from "./target.js";
import { credentialsOf, type Tls } from "./tls.js";
import type { ChannelCredentials } from "@grpc/grpc-js";

/** Options of a client. */
export interface Options {
  /** What an outage answers: `"allow"`, `"deny"`, or `"error"`, which throws. There is no default. */
  onFailure: Policy;
  /** The time for a decision, connecting included. 100 if not set. */
  timeoutMs?: number;
  /** TLS. Without it, the connection is plain text. */
  tls?: Tls;
  /** A token, or a function that returns one for each call. It is sent as `authorization: Bearer …`. */
  token?: string | (() => string | Promise<string>);
  /** Allows a token without TLS to a target that is not loopback. */
  insecureToken?: boolean;
  /** Whether to stop asking while no server answers. True if not set. */
  breaker?: boolean;
  /** Whether to leave out nodes that hang or fail. True if not set. */
  ejection?: boolean;
  /** The strategy of questions that name none. */
  strategy?: string;
  /** `"auto"`, the default: traces and metrics, if the OpenTelemetry API is installed. `"off"`: none. */
  telemetry?: "auto" | "off";
}

/** Options that were checked. @internal */
export interface Settings {
  readonly target: Target;
  readonly onFailure: Policy;
  readonly timeoutMs: number;
  readonly credentials: ChannelCredentials;
  readonly token: string | (() => string | Promise<string>) | undefined;
  readonly breaker: boolean;
  readonly ejection: boolean;
  readonly strategy: string | undefined;
  readonly telemetry: boolean;
}

const NAMES: readonly (keyof Options)[] = [
  "onFailure",
  "timeoutMs",
  "tls",
  "token",
  "insecureToken",
  "breaker",
  "ejection",
  "strategy",
  "telemetry",
];
const DEFAULT_TIMEOUT_MS = 100;

/** Checks options. Throws ConfigurationError. @internal */
export function settingsOf(target: string, options: Options): Settings {
  const given: unknown = options;
  if (typeof given !== "object" || given === null) {
    throw new ConfigurationError('options: required, with onFailure: "allow", "deny" or "error"');
  }
  checkNames(given);
  checkBooleans(options);
  const { onFailure, timeoutMs = DEFAULT_TIMEOUT_MS, tls, token, strategy, telemetry = "auto" } = options;
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
  const parsed = parseTarget(target);
  checkToken(options, parsed);
  return {
    target: parsed,
    onFailure,
    timeoutMs,
    credentials: credentialsOf(tls),
    token,
    breaker: options.breaker ?? true,
    ejection: options.ejection ?? true,
    strategy,
    telemetry: telemetry === "auto",
  };
}

// A misspelled option would be left out without a word.
function checkNames(options: object): void {
  const unknown = Object.keys(options).find((name) => !NAMES.some((known) => known === name));
  if (unknown !== undefined) throw new ConfigurationError(`${unknown}: not one of the options ${NAMES.join(", ")}`);
}

function checkBooleans(options: Options): void {
  for (const name of ["insecureToken", "breaker", "ejection"] as const) {
    const value: unknown = options[name];
    if (value !== undefined) checkOneOf(name, value, [true, false]);
  }
}

function checkOneOf(name: string, value: unknown, allowed: readonly unknown[]): void {
  if (allowed.includes(value)) return;
  throw new ConfigurationError(`${name}: ${String(value)} is not ${allowed.map((one) => JSON.stringify(one)).join(" or ")}`);
}

// The value of a token is never part of a text.
function checkToken({ token, tls, insecureToken }: Options, target: Target): void {
  if (token === undefined) return;
  if (typeof token !== "function" && !isToken(token)) {
    throw new ConfigurationError("token: not a text of visible ASCII characters, and not a function");
  }
  if (tls !== undefined || target.loopback || insecureToken === true) return;
  throw new ConfigurationError(
    `token: it would be sent in plain text to ${target.text}; set tls, or insecureToken: true if the network is trusted`,
  );
}

/** Whether a value can be sent as a token. @internal */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}
