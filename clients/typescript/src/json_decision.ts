// Decisions from the JSON of Weir: protobuf's mapping, with 64-bit numbers and durations as texts.

import { decisionOf, type Decision, type LimitStatus, type Reason } from "./decision.js";

const REASONS: Partial<Record<string, Reason>> = {
  REASON_OK: "ok",
  REASON_LIMITED: "limited",
  REASON_NEVER: "never",
  REASON_DENY_LIST: "deny_list",
  REASON_ALLOW_LIST: "allow_list",
  REASON_STORE_FAILURE: "store_failure",
  REASON_FULL: "full",
  REASON_BANNED: "banned",
};

type Fields = Readonly<Record<string, unknown>>;

/** Returns the decision that a text is, or undefined if it is none. @internal */
export function decisionFromJson(text: string): Decision | undefined {
  try {
    const json: unknown = JSON.parse(text);
    // Weir writes it in every answer. Without it, an answer of another server would be a denial.
    return isFields(json) && typeof json.allowed === "boolean" ? decision(json, json.allowed) : undefined;
  } catch {
    return undefined;
  }
}

function decision(json: Fields, allowed: boolean): Decision {
  const { reason, deniedBy, limits, headers } = json;
  return decisionOf({
    allowed,
    source: "weir",
    degraded: json.degraded === true,
    reason: (typeof reason === "string" ? REASONS[reason] : undefined) ?? "unknown",
    deniedBy: list(deniedBy).map(textOf),
    limits: list(limits).map(limit),
    headers: isFields(headers) ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, textOf(value)])) : {},
    local: json.local === true,
    approximate: json.approximate === true,
    ...count("limit", json.limit),
    ...count("remaining", json.remaining),
    ...count("granted", json.granted),
    ...milliseconds("retryAfterMs", json.retryAfter),
    ...milliseconds("resetAfterMs", json.resetAfter),
    ...milliseconds("waitMs", json.wait),
    ...(typeof json.applied === "boolean" ? { applied: json.applied } : {}),
    ...text("binding", json.binding),
    ...text("message", json.message),
  });
}

function limit(json: unknown): LimitStatus {
  if (!isFields(json)) throw new TypeError("not a limit");
  return {
    name: textOf(json.name ?? ""),
    allowed: json.allowed === true,
    limit: whole(json.limit ?? 0),
    remaining: whole(json.remaining ?? 0),
    ...milliseconds("retryAfterMs", json.retryAfter),
    ...milliseconds("resetAfterMs", json.resetAfter),
    ...text("cause", json.cause),
  };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function list(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new TypeError("not a list");
  return value;
}

function textOf(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("not a text");
  return value;
}

function whole(value: unknown): number {
  const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number)) throw new TypeError("not a whole number");
  return number;
}

function count<Name extends string>(name: Name, value: unknown): Partial<Record<Name, number>> {
  return value === undefined || value === null ? {} : ({ [name]: whole(value) } as Partial<Record<Name, number>>);
}

function milliseconds<Name extends string>(name: Name, value: unknown): Partial<Record<Name, number>> {
  if (value === undefined || value === null) return {};
  const [, seconds, fraction = ""] = /^(\d+)(?:\.(\d{1,9}))?s$/.exec(textOf(value)) ?? [];
  if (seconds === undefined) throw new TypeError("not a duration");
  return { [name]: Number(seconds) * 1000 + Number(fraction.padEnd(9, "0")) / 1e6 } as Partial<Record<Name, number>>;
}

function text<Name extends string>(name: Name, value: unknown): Partial<Record<Name, string>> {
  return value === undefined || value === "" ? {} : ({ [name]: textOf(value) } as Partial<Record<Name, string>>);
}
