// Settlements of a client: what no server has answered is repeated until one does, or its time is over.

import { tooOld } from "./budget.js";
import { ClosedError, MistakeError, OutageError } from "./errors.js";
import { SETTLE, type SettledAs } from "./meter_wire.js";

const ATTEMPT_MS = 2000;
const MOST = 10_000;
const LONGEST_MS = 300_000;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/** Sends one settlement. @internal */
export type Send = (method: typeof SETTLE, message: Uint8Array, timeoutMs: number) => Promise<SettledAs>;

/** What has become of a settlement. @internal */
export type SettlementEvent = SettledAs | "dropped" | "mistake";

/** What settlements need of their client. @internal */
export interface SettlementHost {
  /** Whether the breaker keeps calls back. */
  readonly isOpen: () => boolean;
  /** Records an event. */
  readonly record: (event: SettlementEvent, error?: MistakeError) => void;
  /** Keeps the client open until a promise has settled. */
  readonly tracked: <T>(promise: Promise<T>) => Promise<T>;
}

/** A settlement, which is repeated as it is: with its id and its costs. */
interface Settlement {
  readonly message: Uint8Array;
  /** Whether it only gives back what a question without an answer may hold. Then no hold need be there. */
  readonly isRelease: boolean;
  readonly until: number;
}

/** The settlements of a client. @internal */
export class Settlements {
  readonly #host: SettlementHost;
  readonly #send: Send;
  #due: Settlement[] = [];
  #works = false;
  #closing = false;
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(host: SettlementHost, send: Send) {
    this.#host = host;
    this.#send = send;
  }

  /** Settles. What an outage prevents is repeated. Rejects with a mistake. */
  settle(message: Uint8Array, send: Send): Promise<void> {
    return this.#host.tracked(this.#settle(settlement(message, false), send));
  }

  /** Gives back what a question without an answer may hold. What the breaker kept back holds nothing. */
  release(message: Uint8Array): void {
    if (!this.#host.isOpen()) this.#repeat(settlement(message, true));
  }

  /** From now on nothing waits long. */
  close(): void {
    this.#closing = true;
    this.#wake();
  }

  /** Drops what is due, at the end of the client. */
  end(): void {
    this.#ended = true;
    for (const _ of this.#due) this.#host.record("dropped");
    this.#due = [];
    this.#wake();
  }

  async #settle(one: Settlement, send: Send): Promise<void> {
    if (this.#ended) {
      this.#host.record("dropped");
      throw new ClosedError();
    }
    if (this.#host.isOpen() || !(await this.#attempt(one, send))) this.#repeat(one);
  }

  /** Settles once. Returns whether it is over: an outage may end. */
  async #attempt({ message, isRelease }: Settlement, send: Send): Promise<boolean> {
    try {
      const event = await send(SETTLE, message, ATTEMPT_MS);
      this.#host.record(isRelease ? "settled" : event);
      return true;
    } catch (error) {
      if (error instanceof OutageError) return false;
      if (!(error instanceof MistakeError)) throw error;
      const mistake = error.code === "UNIMPLEMENTED" ? tooOld("method Settle") : error;
      this.#host.record("mistake", mistake);
      throw mistake;
    }
  }

  #repeat(one: Settlement): void {
    if (this.#ended || this.#due.length >= MOST) {
      this.#host.record("dropped");
      return;
    }
    this.#due.push(one);
    if (this.#works) return;
    this.#works = true;
    void this.#host.tracked(this.#work());
  }

  /** Repeats what is due until nothing is left. The pauses grow while no server answers. */
  async #work(): Promise<void> {
    let pause = SHORTEST_PAUSE_MS;
    while (this.#due.length > 0) {
      await this.#paused(Math.min(pause, this.#closing ? SHORTEST_PAUSE_MS : LONGEST_PAUSE_MS));
      const one = this.#due.shift();
      if (one === undefined) break;
      if (performance.now() >= one.until) this.#host.record("dropped");
      else if (await this.#attempt(one, this.#send).catch(() => true)) pause = 0;
      else {
        pause = Math.max(pause * 2, SHORTEST_PAUSE_MS);
        // Behind the others, so that one which a server cannot answer does not stop them.
        if (this.#ended) this.#host.record("dropped");
        else this.#due.push(one);
      }
    }
    this.#works = false;
  }

  // It keeps no process alive.
  #paused(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms * (0.5 + Math.random() / 2)).unref();
      if (this.#closing) return;
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function settlement(message: Uint8Array, isRelease: boolean): Settlement {
  return { message, isRelease, until: performance.now() + LONGEST_MS };
}
