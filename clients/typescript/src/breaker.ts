// The breaker: while no server answers, calls get the policy at once, and a few probes are sent.

import { OutageError } from "./errors.js";

const OUTAGES = 5;
const SILENCE_MS = 500;
const SHORTEST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 1000;

/** Counts outages since the last answer of a server. Times are in milliseconds of any clock that never steps back. */
export class Breaker {
  #outages = 0;
  #silentSince = 0;
  #last: OutageError | undefined;
  /** Made once for each outage, because the stack of an error costs more than the rest of an answer. */
  #openError: OutageError | undefined;
  #waitMs = SHORTEST_WAIT_MS;
  #probedAt = 0;
  #connected = false;
  #open = false;

  /** Whether calls get the policy, except for probes. */
  get open(): boolean {
    return this.#open;
  }

  /** The failure of a call that is not sent. Its cause is the last outage. */
  get openError(): OutageError {
    this.#openError ??= new OutageError("UNAVAILABLE", "the breaker is open", this.#last);
    return this.#openError;
  }

  /** Whether a call may be sent. A connection that has come back is worth a probe before it is due. */
  admits(now: number, connected: boolean): boolean {
    if (!this.#open) return true;
    const reconnected = connected && !this.#connected;
    const due = this.#probedAt + (reconnected ? SHORTEST_WAIT_MS : this.#waitMs);
    if (now < due) return false;
    this.#connected = connected;
    this.#probedAt = now;
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
    return true;
  }

  /** Records an answer of a server: a decision or a mistake. */
  answered(): void {
    this.#outages = 0;
    this.#last = undefined;
    this.#openError = undefined;
    this.#open = false;
  }

  /** Records an outage. */
  failed(now: number, connected: boolean, outage: OutageError): void {
    if (this.#outages === 0) this.#silentSince = now;
    this.#outages += 1;
    this.#last = outage;
    this.#openError = undefined;
    if (this.#open) {
      this.#connected &&= connected;
    } else if (this.#outages >= OUTAGES && now - this.#silentSince >= SILENCE_MS) {
      this.#open = true;
      this.#waitMs = SHORTEST_WAIT_MS;
      this.#probedAt = now;
      this.#connected = connected;
    }
  }
}
