// A meter that has begun: it counts what is used, and settles once.

import { randomBytes } from "node:crypto";

import type { Defaults } from "./checked_question.js";
import type { Decision } from "./decision.js";
import { BudgetRefusedError, MistakeError } from "./errors.js";
import type { Meter, MeterQuestion, Use } from "./meter.js";
import { MeterMessages, NUMBER } from "./meter_wire.js";
import type { Encoded } from "./question.js";

/** What a meter needs of its client. @internal */
export interface MeterCalls {
  /** Asks a server, or the policy. */
  readonly decide: (question: Encoded) => Promise<Decision>;
  /** Settles. What an outage prevents is repeated. Rejects with a mistake. */
  readonly settle: (message: Uint8Array) => Promise<void>;
  /** Gives back what a question without an answer may hold. */
  readonly release: (message: Uint8Array) => void;
}

/** Asks for a budget. Throws BudgetRefusedError, MistakeError, OutageError, or the reason of the signal. @internal */
export async function beginMeter(question: MeterQuestion, defaults: Defaults, calls: MeterCalls): Promise<Meter> {
  question.signal?.throwIfAborted();
  const messages = new MeterMessages(question, defaults, randomBytes(16).toString("base64url"));
  let decision: Decision;
  try {
    decision = await calls.decide(messages.asked);
  } catch (error) {
    // The answer may be lost, and the estimate be held all the same.
    if (!(error instanceof MistakeError)) calls.release(messages.settlement(messages.nothing()));
    throw error;
  }
  if (decision.allowed) return new HeldMeter(decision, messages, question, calls.settle);
  if (decision.source === "policy") calls.release(messages.settlement(messages.nothing()));
  throw new BudgetRefusedError(decision);
}

/** @internal */
export class HeldMeter implements Meter {
  readonly decision: Decision;
  readonly #messages: MeterMessages;
  readonly #question: Pick<MeterQuestion, "onError" | "signal">;
  readonly #send: (message: Uint8Array) => Promise<void>;
  #added: Use = {};
  #settled: Use | undefined;

  constructor(decision: Decision, messages: MeterMessages, question: Pick<MeterQuestion, "onError" | "signal">, send: (message: Uint8Array) => Promise<void>) {
    this.decision = decision;
    this.#messages = messages;
    this.#question = question;
    this.#send = send;
  }

  /** What was settled. */
  get settled(): Use | undefined {
    return this.#settled;
  }

  granted(name = NUMBER): number | undefined {
    this.#messages.check({ [name]: 0 });
    const asked = this.#messages.estimate[name];
    if (this.decision.heldForMs === undefined || asked === undefined) return undefined;
    // A limit in shadow mode that would not admit grants nothing.
    return this.decision.limits.reduce((least, { cost, granted = 0 }) => (cost === asked && granted > 0 ? Math.min(least, granted) : least), asked);
  }

  add(used: Use): void {
    this.#messages.check(used);
    this.#open();
    for (const [name, units] of Object.entries(used)) this.#added[name] = (this.#added[name] ?? 0) + units;
  }

  async settle(used: number | Use = {}): Promise<void> {
    const units = typeof used === "number" ? { [NUMBER]: used } : used;
    this.#messages.check(units);
    this.#open();
    await this.#end({ ...this.#added, ...units });
  }

  async fail(): Promise<void> {
    if (this.#settled !== undefined) return;
    const isUsed = Object.keys(this.#added).length > 0;
    const given = this.#question.onError === "keep" ? {} : this.#messages.nothing();
    // A mistake is logged and counted. What the work has thrown matters more.
    await this.#end(isUsed ? this.#added : given).catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#question.signal?.aborted === true) await this.fail();
    else if (this.#settled === undefined) await this.#end(this.#added);
  }

  #open(): void {
    if (this.#settled !== undefined) throw new MistakeError("FAILED_PRECONDITION", "the meter is settled already");
  }

  #end(used: Use): Promise<void> {
    // Without a hold, only costs that are named are charged.
    this.#settled = this.decision.heldForMs === undefined ? { ...this.#messages.estimate, ...used } : { ...used };
    return this.#send(this.#messages.settlement(this.#settled));
  }
}
