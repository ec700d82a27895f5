// Decisions from the JSON of Weir: protobuf's mapping, with 64-bit numbers and durations as texts.

import { decisionOf, type Decision, type LimitStatus, type Reason } from "./decision.js";

const REASONS: readonly string[] = ["ok", "limited", "never", "deny_list", "allow_list", "store_failure", "full", "banned"] satisfies Reason[];

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
  const known = typeof reason === "string" ? reason.replace("REASON_", "").toLowerCase() : "";
  return decisionOf({
    allowed,
    source: "weir",
    degraded: json.degraded === true,
    reason: REASONS.includes(known) ? (known as Reason) : "unknown",
    deniedBy: list(deniedBy).map(textOf),
    limits: list(limits).map(limit),
    headers: isFields(headers) ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, textOf(value)])) : {},
    local: json.local === true,
    approximate: json.approximate === true,
    ...each(["limit", "remaining", "granted"], json, whole),
    ...each(["retryAfter", "resetAfter", "wait", "heldFor"], json, milliseconds, "Ms"),
    ...each(["applied"], json, (value) => (typeof value === "boolean" ? value : undefined)),
    ...each(["binding", "message"], json, textOf),
  });
}

function limit(json: unknown): LimitStatus {
  if (!isFields(json)) throw new TypeError("not a limit");
  return {
    name: textOf(json.name ?? ""),
    allowed: json.allowed === true,
    limit: whole(json.limit ?? 0),
    remaining: whole(json.remaining ?? 0),
    ...each(["retryAfter", "resetAfter"], json, milliseconds, "Ms"),
    ...each(["cause"], json, textOf),
    ...each(["cost", "granted", "held"], json, (value) => whole(value) || undefined),
    ...each(["nearLimit", "crossedNearLimit"], json, (value) => value === true || undefined),
  };
}

/** Returns the fields of these names that are set. */
function each<Name extends string, Suffix extends string, Value>(
  names: readonly Name[],
  json: Fields,
  read: (value: unknown) => Value | undefined,
  suffix = "" as Suffix,
): Partial<Record<`${Name}${Suffix}`, Value>> {
  const set = names.filter((name) => json[name] !== undefined && json[name] !== null && json[name] !== "");
  const found = set.map((name) => [name + suffix, read(json[name])]).filter(([, value]) => value !== undefined);
  return Object.fromEntries(found) as Partial<Record<`${Name}${Suffix}`, Value>>;
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

function milliseconds(value: unknown): number {
  const [, seconds, fraction = ""] = /^(\d+)(?:\.(\d{1,9}))?s$/.exec(textOf(value)) ?? [];
  if (seconds === undefined) throw new TypeError("not a duration");
  return Number(seconds) * 1000 + Number(fraction.padEnd(9, "0")) / 1e6;
}
