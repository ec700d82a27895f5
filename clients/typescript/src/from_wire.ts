// Decisions from the messages of the wire.

import type { Duration } from "@bufbuild/protobuf/wkt";

import { decisionOf, type Decision, type LimitStatus, type Reason } from "./decision.js";
import { Reason as Wire, type LimitStatus as WireLimit, type ShouldAllowResponse } from "./gen/weir/v1/rate_limit_pb.js";

const REASONS = new Map<Wire, Reason>([
  [Wire.OK, "ok"],
  [Wire.LIMITED, "limited"],
  [Wire.NEVER, "never"],
  [Wire.DENY_LIST, "deny_list"],
  [Wire.ALLOW_LIST, "allow_list"],
  [Wire.STORE_FAILURE, "store_failure"],
  [Wire.FULL, "full"],
  [Wire.BANNED, "banned"],
]);

/** Returns the reason of a number on the wire, also of one that this version does not know. */
export function reasonOf(reason: Wire): Reason {
  return REASONS.get(reason) ?? "unknown";
}

/** Returns a duration in milliseconds. */
export function durationMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}

/** Returns milliseconds as a duration, in whole microseconds. */
export function durationOf(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1000) * 1000;
  return { $typeName: "google.protobuf.Duration", seconds: BigInt(seconds), nanos: Math.min(nanos, 999_999_000) };
}

/** Returns the decision that a server sent. */
export function decisionFromWire(response: ShouldAllowResponse): Decision {
  return decisionOf({
    allowed: response.allowed,
    source: "weir",
    degraded: response.degraded,
    reason: reasonOf(response.reason),
    deniedBy: response.deniedBy,
    limits: response.limits.map(limitFromWire),
    headers: response.headers,
    local: response.local,
    approximate: response.approximate,
    ...count("limit", response.limit),
    ...count("remaining", response.remaining),
    ...count("granted", response.granted),
    ...milliseconds("retryAfterMs", response.retryAfter),
    ...milliseconds("resetAfterMs", response.resetAfter),
    ...milliseconds("waitMs", response.wait),
    ...milliseconds("heldForMs", response.heldFor),
    ...(response.applied === undefined ? {} : { applied: response.applied }),
    ...(response.binding === "" ? {} : { binding: response.binding }),
    ...(response.message === "" ? {} : { message: response.message }),
  });
}

function limitFromWire(limit: WireLimit): LimitStatus {
  return {
    name: limit.name,
    allowed: limit.allowed,
    limit: Number(limit.limit),
    remaining: Number(limit.remaining),
    ...milliseconds("retryAfterMs", limit.retryAfter),
    ...milliseconds("resetAfterMs", limit.resetAfter),
    ...(limit.cause === "" ? {} : { cause: limit.cause }),
    ...above0("cost", limit.cost),
    ...above0("granted", limit.granted),
    ...above0("held", limit.held),
    ...(limit.nearLimit ? { nearLimit: true } : {}),
    ...(limit.crossedNearLimit ? { crossedNearLimit: true } : {}),
  };
}

// Limits and remaining costs are at most 2^52, so a number holds them exactly.
function count<Name extends string>(name: Name, value: bigint | undefined): Partial<Record<Name, number>> {
  return value === undefined ? {} : ({ [name]: Number(value) } as Partial<Record<Name, number>>);
}

function above0<Name extends string>(name: Name, value: bigint): Partial<Record<Name, number>> {
  return count(name, value === 0n ? undefined : value);
}

function milliseconds<Name extends string>(name: Name, value: Duration | undefined): Partial<Record<Name, number>> {
  if (value === undefined) return {};
  return { [name]: durationMs(value) } as Partial<Record<Name, number>>;
}
