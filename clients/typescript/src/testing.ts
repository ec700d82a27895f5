// For tests: fakes, which answer by a script and know no algorithm, and a real `weir` on a clock that the test moves.

import { isMistakeCode, type MistakeCode, type OutageCode } from "./codes.js";
import { decisionOf, policyDecision, type Decision, type DecisionFields } from "./decision.js";
import { BudgetRefusedError, ClosedError, ConfigurationError, LeaseLostError, LeaseRefusedError, MistakeError, OutageError } from "./errors.js";
import type { Lease, LeaseQuestion, WorkOutcome } from "./lease.js";
import { HeldMeter } from "./held_meter.js";
import { isPolicy, type Limiter, type Policy, type Question } from "./limiter.js";
import type { Meter, MeterQuestion, Use } from "./meter.js";
import { MeterMessages } from "./meter_wire.js";
import { encodeQuestion } from "./question.js";

export { serve, type Server } from "./test_server.js";

/** Options of a fake. */
export interface FakeOptions {
  /** What an outage answers. `"error"` if not set. */
  onFailure?: Policy;
  /** The clock of the test, in milliseconds. `Date.now` if not set. */
  clock?: () => number;
}

/** A question that a fake was asked, and when. */
export type Asked = Question & { readonly at: number; readonly holdForMs?: number };

/** Fields of a scripted decision. The others are those of an answer without limits. */
export type ScriptedFields = Partial<Omit<DecisionFields, "allowed" | "source" | "failure">>;

/** How long a line of the script holds. */
export interface Times {
  /** The number of questions that this line answers. All that match if not set. */
  times?: number;
}

type Answer = (question: Question, policy: Policy) => Decision;

interface Line {
  readonly consumer: string | undefined;
  readonly answer: Answer;
  left: number;
}

/** The script of a fake: the newest line that matches answers. Without a consumer, a line matches every question. */
export class Script {
  readonly #lines: Line[] = [];

  /** Allows. */
  allow(consumer?: string, fields: ScriptedFields & Times = {}): this {
    return this.#add(consumer, fields, (question) => scripted(true, question, { reason: "ok", ...fields }));
  }

  /** Denies. */
  deny(consumer?: string, fields: ScriptedFields & Times = {}): this {
    return this.#add(consumer, fields, (question) => scripted(false, question, { reason: "limited", ...fields }));
  }

  /** Is away: the policy answers. */
  away(consumer?: string, { code = "UNAVAILABLE", ...rest }: { code?: OutageCode } & Times = {}): this {
    return this.#add(consumer, rest, (_, policy) => {
      const outage = new OutageError(code, "the fake is away");
      if (policy === "error") throw outage;
      return policyDecision(policy === "allow", outage);
    });
  }

  /** Throws a mistake, whatever the policy is. */
  mistake(code: MistakeCode, { consumer, field, ...rest }: { consumer?: string; field?: string } & Times = {}): this {
    if (!isMistakeCode(code)) throw new ConfigurationError(`code: ${String(code)} is not the code of a mistake`);
    return this.#add(consumer, rest, () => {
      throw new MistakeError(code, "a mistake of the script", field);
    });
  }

  /** Forgets all lines: everything is allowed. */
  clear(): this {
    this.#lines.length = 0;
    return this;
  }

  /** @internal */
  answer(question: Question, policy: Policy): Decision {
    const line = this.#lines.findLast(({ consumer, left }) => left > 0 && (consumer ?? question.consumer) === question.consumer);
    if (line === undefined) return scripted(true, question, { reason: "ok" });
    line.left -= 1;
    return line.answer(question, policy);
  }

  #add(consumer: string | undefined, { times = Number.POSITIVE_INFINITY }: Times, answer: Answer): this {
    this.#lines.push({ consumer, answer, left: times });
    return this;
  }
}

/** A lease of a fake. It is held until it is released, or the test takes it away. */
export class FakeLease implements Lease {
  readonly decision: Decision;
  /** How the work went, once the lease is released. */
  outcome: WorkOutcome | undefined;
  readonly #lost = new AbortController();

  /** @internal */
  constructor(decision: Decision) {
    this.decision = decision;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get held(): boolean {
    return this.outcome === undefined && !this.#lost.signal.aborted;
  }

  /** Takes the lease away, as an outage of a whole ttl does. */
  lose(): void {
    if (this.held) this.#lost.abort(new LeaseLostError("the test has taken the lease away"));
  }

  release(outcome: WorkOutcome = "success"): Promise<void> {
    this.outcome ??= this.#lost.signal.aborted ? "ignored" : outcome;
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** A meter of a fake. It keeps what it has settled. */
export interface FakeMeter extends Meter {
  /** What was settled, by name. A name that is absent counts as granted. `undefined`: nothing yet. */
  readonly settled: Use | undefined;
}

/** A client for tests. It needs no server, and answers by its script. */
export class FakeClient implements Limiter {
  /** What it answers. Everything is allowed until a line says otherwise. */
  readonly script = new Script();
  /** What it was asked, in order. */
  readonly asked: Asked[] = [];
  /** The leases that it has granted, in order. */
  readonly leases: FakeLease[] = [];
  /** The meters that it has begun, in order. */
  readonly meters: FakeMeter[] = [];
  readonly onFailure: Policy;
  readonly #clock: () => number;
  #closed = false;

  constructor({ onFailure = "error", clock = Date.now }: FakeOptions = {}) {
    if (!isPolicy(onFailure)) throw new ConfigurationError(`onFailure: ${String(onFailure)} is not a policy`);
    this.onFailure = onFailure;
    this.#clock = clock;
  }

  /** Answers by the script. Questions are checked as those of a client are. */
  async allow(question: Question): Promise<Decision> {
    if (this.#closed) throw new ClosedError();
    question.signal?.throwIfAborted();
    const { policy } = encodeQuestion(question, { onFailure: this.onFailure, timeoutMs: 100, strategy: undefined });
    this.asked.push({ ...question, at: this.#clock() });
    return Promise.resolve(this.script.answer(question, policy));
  }

  /** Grants a lease, or throws LeaseRefusedError, by the script. */
  async lease(question: LeaseQuestion): Promise<FakeLease> {
    const { weight: _weight, ttlMs: _ttl, waitMs: _wait, ...rest } = question;
    const decision = await this.allow(rest);
    if (!decision.allowed) throw new LeaseRefusedError(decision);
    const lease = new FakeLease(decision);
    this.leases.push(lease);
    return lease;
  }

  /** Begins a meter, or throws BudgetRefusedError, by the script. */
  async meter(question: MeterQuestion): Promise<FakeMeter> {
    const messages = new MeterMessages(question, { onFailure: this.onFailure, timeoutMs: 100, strategy: undefined }, "fake");
    const { estimate, onError: _, ...rest } = question;
    const decision = await this.allow({ ...rest, ...(typeof estimate === "number" ? { cost: estimate } : { costs: estimate }) });
    if (!decision.allowed) throw new BudgetRefusedError(decision);
    const meter = new HeldMeter(decision, messages, question, () => Promise.resolve());
    this.meters.push(meter);
    return meter;
  }

  /** The same as for a client that is connected. */
  ready(): Promise<boolean> {
    return Promise.resolve(!this.#closed);
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function scripted(allowed: boolean, question: Question, fields: ScriptedFields & Times & Pick<DecisionFields, "reason">): Decision {
  const { times: _, headers, ...rest } = fields;
  return decisionOf({
    degraded: false,
    deniedBy: [],
    limits: [],
    local: false,
    approximate: false,
    ...rest,
    allowed,
    source: "weir",
    headers: question.headers === true ? (headers ?? {}) : {},
  });
}
