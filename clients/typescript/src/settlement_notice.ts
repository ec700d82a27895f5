// The log lines for settlements that did not go as they should.

import type { MistakeError } from "./errors.js";
import { OnceAMinute } from "./once_a_minute.js";
import type { SettlementEvent } from "./settlements.js";

const LINES: Partial<Record<SettlementEvent, string>> = {
  late: "WARN: settled after the hold has ended: give a longer holdForMs",
  unknown: "WARN: settled without a hold: the named costs were charged in full",
  dropped: "WARN: settlements were dropped, and what they held comes back",
  mistake: "ERROR: a settlement was refused, and is not repeated",
};

/** Writes at most one line a minute of each kind. @internal */
export class SettlementNotice {
  readonly #kinds = new Map<SettlementEvent, OnceAMinute>();

  /** Records what has become of a settlement. */
  record(event: SettlementEvent, mistake?: MistakeError): void {
    const line = LINES[event];
    if (line === undefined) return;
    const kind = this.#kinds.get(event) ?? new OnceAMinute();
    this.#kinds.set(event, kind);
    const count = kind.count(performance.now());
    if (count > 0) console.error(`weir-ratelimit: ${line} (settlements: ${String(count)})${mistake === undefined ? "" : `: ${mistake.message}`}`);
  }
}
