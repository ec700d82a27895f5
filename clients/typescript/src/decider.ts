// What all clients do around a call: the breaker, the policy, telemetry, and the calls in flight at the end.

import { Breaker } from "./breaker.js";
import { policyDecision, type Decision } from "./decision.js";
import { MistakeError, OutageError, RefusedError } from "./errors.js";
import type { Policy } from "./limiter.js";
import { Notice } from "./notice.js";
import type { Telemetry } from "./telemetry.js";

const now = (): number => performance.now();

/** The headers that carry the context of a trace. */
type Trace = Record<string, string> | undefined;

/** Asks a server. @internal */
export type Ask = (trace: Trace) => Promise<Decision>;

/** The calls of one client. @internal */
export class Decider {
  /** Set as soon as the API of OpenTelemetry is loaded. */
  telemetry: Telemetry | undefined;
  readonly #breaker: Breaker | undefined;
  readonly #connected: () => boolean;
  readonly #notice = new Notice();
  #inFlight = 0;
  #idle: (() => void) | undefined;

  /** `connected`: whether a server is connected now, if the client can know it. */
  constructor(breaker: boolean, connected: () => boolean) {
    this.#breaker = breaker ? new Breaker() : undefined;
    this.#connected = connected;
  }

  /** Returns the answer of a server, or that of the policy. Rejects with MistakeError, OutageError, or the reason of a signal. */
  decide(policy: Policy, ask: Ask): Promise<Decision> {
    return this.#recorded("weir.allow", (trace) => this.answer(policy, () => ask(trace)), (decision) => decision);
  }

  /** Records how a lease or a meter begins. */
  begin<Begun extends { readonly decision: Decision }>(name: string, begin: (trace: Trace) => Promise<Begun>): Promise<Begun> {
    return this.#recorded(name, begin, ({ decision }) => decision);
  }

  /** Whether the breaker keeps calls back. */
  get open(): boolean {
    return this.#breaker?.open === true;
  }


  /** Records an outage of a call beside decisions. One after the beginning (`counted`) belongs to no span. */
  outage(outage: OutageError, counted: boolean): void {
    this.#notice.outage(now(), outage);
    if (counted) this.telemetry?.outage(outage);
  }

  /** Counts a call as one in flight until its promise has settled. */
  async tracked<T>(promise: Promise<T>): Promise<T> {
    this.#inFlight += 1;
    try {
      return await promise;
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#idle?.();
    }
  }

  /** Waits for the calls in flight, for at most this time. */
  async end(timeoutMs: number): Promise<void> {
    if (this.#inFlight > 0) await this.#drained(timeoutMs);
    if (this.#breaker?.open === true) this.telemetry?.breaker(-1);
  }

  async #recorded<T>(name: string, work: (trace: Trace) => Promise<T>, decisionOf: (value: T) => Decision): Promise<T> {
    const recorded = this.telemetry?.begin(name, now);
    try {
      const value = await this.tracked(work(recorded?.trace));
      recorded?.end({ decision: decisionOf(value) });
      return value;
    } catch (error) {
      recorded?.end(error instanceof RefusedError ? { decision: error.decision } : { error });
      throw error;
    }
  }

  /** Does what `decide` does, and records nothing. */
  async answer(policy: Policy, ask: () => Promise<Decision>): Promise<Decision> {
    const breaker = this.#breaker;
    if (breaker?.open === true && !breaker.admits(now(), this.#connected())) return policyAnswer(policy, breaker.openError);
    try {
      const decision = await ask();
      this.#answered();
      return decision;
    } catch (error) {
      if (error instanceof MistakeError) this.#answered();
      if (!(error instanceof OutageError)) throw error;
      this.#failed(error);
      return policyAnswer(policy, error);
    }
  }

  #answered(): void {
    if (this.#breaker?.open === true) this.telemetry?.breaker(-1);
    this.#breaker?.answered();
  }

  #failed(outage: OutageError): void {
    this.#notice.outage(now(), outage);
    const breaker = this.#breaker;
    if (breaker === undefined) return;
    const open = breaker.open;
    breaker.failed(now(), this.#connected(), outage);
    if (breaker.open && !open) this.telemetry?.breaker(1);
  }

  #drained(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function policyAnswer(policy: Policy, outage: OutageError): Decision {
  if (policy === "error") throw outage;
  return policyDecision(policy === "allow", outage);
}
