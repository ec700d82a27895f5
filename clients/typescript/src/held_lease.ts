// A lease that is held: it renews itself, and tells when it is lost.

import type { Decision } from "./decision.js";
import { LeaseLostError } from "./errors.js";
import type { Lease, WorkOutcome } from "./lease.js";
import { RELEASE, RENEW, type LeaseMessages } from "./lease_wire.js";
import type { Method } from "./unary.js";

/** The time of an attempt of a call about a lease. @internal */
export const ATTEMPT_MS = 2000;
const RELEASE_ATTEMPTS = 3;
/** A timer of JavaScript has 31 bits. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Makes one call. @internal */
export type Call = <Answer>(method: Method<Answer>, message: Uint8Array, timeoutMs: number, signal?: AbortSignal) => Promise<Answer>;

/** How long a lease lasts: `ttlMs` from `sentAt`, when the call was sent that says so. @internal */
export interface Term {
  readonly sentAt: number;
  readonly ttlMs: number;
}

/** @internal */
export class HeldLease implements Lease {
  readonly decision: Decision;
  readonly #messages: LeaseMessages;
  readonly #call: Call;
  readonly #lost = new AbortController();
  #endsAt = Number.POSITIVE_INFINITY;
  #renewal: NodeJS.Timeout | undefined;
  #end: NodeJS.Timeout | undefined;
  #released: Promise<void> | undefined;

  /** Without a term, nothing is renewed: the work may go on without a lease. */
  constructor(decision: Decision, messages: LeaseMessages, call: Call, term: Term | undefined) {
    this.decision = decision;
    this.#messages = messages;
    this.#call = call;
    if (term !== undefined) this.#extend(term);
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** It ends by the clock: a process that was stalled may ask before its timers have run. */
  get held(): boolean {
    return this.#isOpen() && performance.now() < this.#endsAt;
  }

  release(outcome: WorkOutcome = "success"): Promise<void> {
    this.#released ??= this.#give(this.held ? outcome : "ignored");
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  #isOpen(): boolean {
    return this.#released === undefined && !this.#lost.signal.aborted;
  }

  // Neither timer keeps the process alive.
  #extend({ sentAt, ttlMs }: Term): void {
    this.#stop();
    this.#endsAt = sentAt + ttlMs;
    const left = this.#endsAt - performance.now();
    this.#end = setTimeout(() => { this.#lose("no server has renewed the lease in time"); }, clamped(left)).unref();
    this.#renewIn(left - (ttlMs * 2) / 3, ttlMs);
  }

  #renewIn(delayMs: number, ttlMs: number): void {
    this.#renewal = setTimeout(() => void this.#renew(ttlMs), clamped(delayMs)).unref();
  }

  async #renew(ttlMs: number): Promise<void> {
    const sentAt = performance.now();
    const timeoutMs = Math.min(ATTEMPT_MS, this.#endsAt - sentAt);
    if (timeoutMs <= 0) return;
    try {
      const { held, expiresMs = ttlMs } = await this.#call(RENEW, this.#messages.renew(), timeoutMs);
      if (!this.#isOpen()) return;
      if (held) this.#extend({ sentAt, ttlMs: expiresMs });
      else this.#lose("the server says that the lease has ended");
    } catch {
      // An outage may end, and a mistake be mended, before the lease ends.
      if (this.held) this.#renewIn(Math.min(1000, ttlMs / 10), ttlMs);
    }
  }

  #lose(message: string): void {
    if (!this.#isOpen()) return;
    this.#stop();
    this.#lost.abort(new LeaseLostError(message));
  }

  #stop(): void {
    clearTimeout(this.#renewal);
    clearTimeout(this.#end);
  }

  async #give(outcome: WorkOutcome): Promise<void> {
    this.#stop();
    if (this.#endsAt === Number.POSITIVE_INFINITY) return;
    await releaseLease(this.#messages, this.#call, outcome);
  }
}

/** Releases a lease, or gives up: it then ends by itself. @internal */
export async function releaseLease(messages: LeaseMessages, call: Call, outcome: WorkOutcome): Promise<void> {
  for (let attempt = 0; attempt < RELEASE_ATTEMPTS; attempt += 1) {
    try {
      await call(RELEASE, messages.release(outcome), ATTEMPT_MS);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function clamped(delayMs: number): number {
  return Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS);
}
