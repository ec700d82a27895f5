// Costs by name: what is checked of a question, and of its answer. Nothing here needs Node, gRPC or protobuf.

import type { Decision } from "./decision.js";
import { MistakeError } from "./errors.js";
import type { Cost, Costs } from "./limiter.js";

/** Servers before this version have neither costs by name nor settlements. */
const LEAST_VERSION = "0.2.0";
const LARGEST = 2 ** 52 - 1;

/** Returns costs as they are sent, if there are any. Throws MistakeError. @internal */
export function checkCosts(costs: Costs = {}): Record<string, Cost> | undefined {
  const named = Object.entries(costs);
  if (named.length === 0) return undefined;
  return Object.fromEntries(named.map(([name, given]) => {
    const cost = typeof given === "object" ? given : { cost: given };
    checkUnits(name, cost.cost);
    if (cost.atLeast !== undefined) checkUnits(`atLeast of ${name}`, cost.atLeast, 1, cost.cost);
    return [name, cost];
  }));
}

/** Throws MistakeError if units are not a whole number within bounds: those of the server, if not given. @internal */
export function checkUnits(name: string, units: unknown, least = 0, most = LARGEST): void {
  if (Number.isInteger(units) && (units as number) >= least && (units as number) <= most) return;
  throw new MistakeError("INVALID_ARGUMENT", `costs: ${name}: ${String(units)} is not a whole number from ${String(least)} to ${String(most)}`, "costs");
}

/** Returns a decision that regards costs and the hold. A server that does not know them leaves them out unread. @internal */
export function checkAnswer(decision: Decision, hasCosts: boolean, holds: boolean): Decision {
  const { allowed, degraded, reason, limits, heldForMs } = decision;
  if (!allowed || degraded || reason === "allow_list") return decision;
  if (hasCosts && !limits.some(({ cost }) => cost)) throw tooOld("costs by name");
  if (holds && heldForMs === undefined) throw tooOld("holds");
  return decision;
}

/** Returns the mistake of asking a server of an older version. @internal */
export function tooOld(what: string): MistakeError {
  return new MistakeError("UNIMPLEMENTED", `the server has no ${what}: weir ${LEAST_VERSION} or later is needed`);
}
