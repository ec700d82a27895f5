// The log line for credentials that the server refuses: the site goes on, so somebody must be told.

import type { OutageError } from "./errors.js";

const INTERVAL_MS = 60_000;

/** Writes at most one line a minute. @internal */
export class Notice {
  #due = Number.NEGATIVE_INFINITY;
  #count = 0;

  /** Records an outage, and logs it if the server refuses the credentials. */
  outage(now: number, outage: OutageError): void {
    if (outage.code !== "UNAUTHENTICATED") return;
    this.#count += 1;
    if (now < this.#due) return;
    this.#due = now + INTERVAL_MS;
    const calls = this.#count === 1 ? "1 call" : `${String(this.#count)} calls`;
    this.#count = 0;
    console.error(`weir-ratelimit: ERROR: credentials refused for ${calls}; the failure policy answers: ${outage.message}`);
  }
}
