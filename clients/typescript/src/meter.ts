// Meters: budgets of which an estimate is held while work is done, and the real use settled at its end.

import type { Decision } from "./decision.js";
import type { Costs, Question } from "./limiter.js";

/** Asks for a budget. An aborted `signal` also says that the work has failed. */
export interface MeterQuestion extends Omit<Question, "cost" | "costs" | "peek" | "atMost" | "id"> {
  /** What the work may use: a number, or costs by name. */
  estimate: number | Costs;
  /** How long what is granted is held: the longest time that the work takes. 10 minutes if not set. */
  holdForMs?: number;
  /** What failed work settles if nothing was added: `"used"`, the default, gives all back, `"keep"` settles the estimate. */
  onError?: "used" | "keep";
}

/** Units by name. The name of an estimate that is a number is `cost`. */
export type Use = Record<string, number>;

/**
 * An estimate that is held. It settles once: what `settle` says, else the sum of `add`, else the estimate. `await using` settles at
 * the end of its block, and cannot see whether the block has thrown: call `fail()` where it has, or pass a `signal`.
 */
export interface Meter extends AsyncDisposable {
  /** The decision that admits the work. */
  readonly decision: Decision;
  /** Returns the units that a cost was granted. `undefined`: a policy or an allow list answered, so nothing is held. */
  granted(name?: string): number | undefined;
  /** Adds what was used. */
  add(used: Use): void;
  /** Settles the real use now. A name that is absent counts as added, or as granted. An outage is not thrown: the settlement is then repeated. */
  settle(used?: number | Use): Promise<void>;
  /** Ends a meter whose work has failed: settles what was added, or gives all back if nothing was. Never rejects. */
  fail(): Promise<void>;
}
