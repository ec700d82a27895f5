// Log lines for what goes on without an error that a caller sees, so somebody must be told: at most one a minute.

const INTERVAL_MS = 60_000;

/** Counts until a line is due. @internal */
export class OnceAMinute {
  #due = Number.NEGATIVE_INFINITY;
  #count = 0;

  /** Returns the number for a line that is due, or 0. */
  count(now: number): number {
    const count = this.#count + 1;
    const isDue = now >= this.#due;
    if (isDue) this.#due = now + INTERVAL_MS;
    this.#count = isDue ? 0 : count;
    return isDue ? count : 0;
  }
}
