// The log line for credentials that the server refuses: the site goes on, so somebody must be told.

import type { OutageError } from "./errors.js";
import { OnceAMinute } from "./once_a_minute.js";

/** Writes at most one line a minute. @internal */
export class Notice {
  readonly #refused = new OnceAMinute();

  /** Records an outage, and logs it if the server refuses the credentials. */
  outage(now: number, outage: OutageError): void {
    if (outage.code !== "UNAUTHENTICATED") return;
    const count = this.#refused.count(now);
    const calls = count === 1 ? "1 call" : `${String(count)} calls`;
    if (count > 0) console.error(`weir-ratelimit: ERROR: credentials refused for ${calls}; the failure policy answers: ${outage.message}`);
  }
}
