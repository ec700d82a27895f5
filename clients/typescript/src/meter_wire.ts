// The question of a meter, and its settlement. They have one id.

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";

import { checkUnits } from "./budget.js";
import { refuse, type Defaults } from "./checked_question.js";
import { SettleOutcome, SettleRequestSchema, SettleResponseSchema } from "./gen/weir/v1/rate_limit_pb.js";
import type { MeterQuestion, Use } from "./meter.js";
import { encodeQuestion, type Encoded } from "./question.js";
import type { Method } from "./unary.js";

/** The name under which an estimate that is a number is counted. @internal */
export const NUMBER = "cost";
const DEFAULT_HOLD_MS = 600_000;
const LONGEST_HOLD_MS = 86_400_000;

/** What a settlement has found, in the words of the metric. @internal */
export type SettledAs = "settled" | "late" | "unknown";

/** @internal */
export const SETTLE: Method<SettledAs> = {
  path: "/weir.v1.RateLimitService/Settle",
  decode: (bytes) => {
    const { outcome } = fromBinary(SettleResponseSchema, bytes);
    if (outcome === SettleOutcome.LATE) return "late";
    return outcome === SettleOutcome.UNKNOWN ? "unknown" : "settled";
  },
};

/** The messages of one meter. @internal */
export class MeterMessages {
  /** The question. */
  readonly asked: Encoded;
  /** The units of the estimate, by name. */
  readonly estimate: Use;
  readonly #isNumber: boolean;
  readonly #place: { resource: string; id: string; consumer: string; strategy: string; attributes: Record<string, string> };

  /** Checks the question. Throws MistakeError. */
  constructor(question: MeterQuestion, defaults: Defaults, id: string) {
    const { estimate, holdForMs = DEFAULT_HOLD_MS, onError, ...rest } = question;
    if (!(holdForMs > 0 && holdForMs <= LONGEST_HOLD_MS)) refuse("holdForMs", holdForMs, `a number above 0 and at most ${String(LONGEST_HOLD_MS)}`);
    if (onError !== undefined && (onError as string) !== "used" && (onError as string) !== "keep") refuse("onError", onError, '"used" or "keep"');
    if ((typeof estimate !== "number" && typeof estimate !== "object") || (estimate as unknown) === null) refuse("estimate", estimate, "a number, or costs by name");
    this.#isNumber = typeof estimate === "number";
    this.asked = encodeQuestion({ ...rest, id, ...(typeof estimate === "number" ? { cost: estimate } : { costs: estimate }) }, defaults, holdForMs);
    const costs = typeof estimate === "number" ? { [NUMBER]: estimate } : estimate;
    this.estimate = Object.fromEntries(Object.entries(costs).map(([name, cost]) => [name, typeof cost === "object" ? cost.cost : cost]));
    const { resource, consumer = "", strategy = defaults.strategy ?? "", attributes = {} } = question;
    this.#place = { resource, id, consumer, strategy, attributes };
  }

  /** Returns the message that settles this use. A name that is absent counts as used as granted. */
  settlement(used: Use): Uint8Array {
    const units = Object.entries(used).map(([name, count]) => [name, BigInt(count)] as const);
    const costs = this.#isNumber ? { cost: units[0]?.[1] } : { costs: Object.fromEntries(units) };
    return toBinary(SettleRequestSchema, create(SettleRequestSchema, { ...this.#place, ...costs }));
  }

  /** Returns the use that gives back all that is held. */
  nothing(): Use {
    return Object.fromEntries(Object.keys(this.estimate).map((name) => [name, 0]));
  }

  /** Throws MistakeError if a name is none of the estimate, or a number is none of units. */
  check(used: Use): void {
    for (const [name, units] of Object.entries(used)) {
      if (!Object.hasOwn(this.estimate, name)) refuse("used", name, `a cost of the estimate: ${Object.keys(this.estimate).join(", ")}`);
      checkUnits(name, units);
    }
  }
}
