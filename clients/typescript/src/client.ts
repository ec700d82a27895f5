// The client of Weir over gRPC.

import { fromBinary } from "@bufbuild/protobuf";
import type { Client as Channel } from "@grpc/grpc-js";

import { acquireLease } from "./acquire.js";
import { checkAnswer } from "./budget.js";
import { isConnected, openChannel } from "./channel.js";
import { Decider } from "./decider.js";
import type { Decision } from "./decision.js";
import { ClosedError, OutageError } from "./errors.js";
import { decisionFromWire } from "./from_wire.js";
import { ShouldAllowResponseSchema } from "./gen/weir/v1/rate_limit_pb.js";
import type { Call } from "./held_lease.js";
import { beginMeter } from "./held_meter.js";
import { installedTelemetry, type NodeTelemetry } from "./installed_telemetry.js";
import type { Lease, LeaseQuestion } from "./lease.js";
import { ACQUIRE } from "./lease_wire.js";
import type { Limiter, Policy, Question } from "./limiter.js";
import type { Meter, MeterQuestion } from "./meter.js";
import { settingsOf, type Options, type Settings } from "./options.js";
import { encodeQuestion, type Encoded } from "./question.js";
import { SettlementNotice } from "./settlement_notice.js";
import { Settlements } from "./settlements.js";
import { Headers } from "./token.js";
import { callUnary, type Method } from "./unary.js";

const SHOULD_ALLOW: Method<Decision> = {
  path: "/weir.v1.RateLimitService/ShouldAllow",
  decode: (bytes) => decisionFromWire(fromBinary(ShouldAllowResponseSchema, bytes)),
};

/** A client of Weir. One client serves a whole process; it connects at the first call. */
export class Client implements Limiter {
  readonly #settings: Settings;
  readonly #headers: Headers;
  readonly #decider: Decider;
  #channel: Channel | undefined;
  #settlements: Settlements | undefined;
  #telemetry: NodeTelemetry | undefined;
  #closing: Promise<void> | undefined;

  /** Checks the options. Neither waits nor fails for the network. Throws ConfigurationError. */
  constructor(target: string, options: Options) {
    this.#settings = settingsOf(target, options);
    this.#headers = new Headers(this.#settings.token);
    this.#decider = new Decider(this.#settings.breaker, () => this.#channel !== undefined && isConnected(this.#channel));
  }

  /** What an outage answers where a question does not say. */
  get onFailure(): Policy {
    return this.#settings.onFailure;
  }

  /** Asks whether a call may go ahead. A denial is a value. Throws MistakeError, and OutageError if the policy is `"error"`. */
  async allow(question: Question): Promise<Decision> {
    const channel = this.#open();
    const { signal } = question;
    signal?.throwIfAborted();
    const encoded = encodeQuestion(question, this.#settings);
    return this.#decider.decide(encoded.policy, (trace) => this.#ask(channel, encoded, signal, trace));
  }

  /**
   * Acquires permits, and renews them until they are released. Throws LeaseRefusedError for a denial, MistakeError, and OutageError
   * if the policy is `"error"`.
   */
  lease(question: LeaseQuestion): Promise<Lease> {
    const channel = this.#open();
    return this.#decider.begin("weir.lease", (trace) => acquireLease(question, this.#settings, this.#calls(channel, trace)));
  }

  /**
   * Holds an estimate of a budget while work is done, and settles the real use at its end. Throws BudgetRefusedError for a denial,
   * MistakeError, and OutageError if the policy is `"error"`.
   */
  meter(question: MeterQuestion): Promise<Meter> {
    const channel = this.#open();
    const settlements = this.#settles(channel);
    return this.#decider.begin("weir.meter", (trace) => beginMeter(question, this.#settings, {
      decide: (encoded) => this.#decider.answer(encoded.policy, () => this.#ask(channel, encoded, question.signal, trace)),
      settle: (message) => settlements.settle(message, this.#calls(channel, trace)),
      release: (message) => { settlements.release(message); },
    }));
  }

  /** Connects, and returns whether a server is connected within the time. */
  ready(timeoutMs: number): Promise<boolean> {
    const channel = this.#open();
    return new Promise((resolve) => {
      channel.waitForReady(Date.now() + timeoutMs, (error) => {
        resolve(error === undefined);
      });
    });
  }

  /** Ends the client. Calls that are in flight have this time to end; later calls throw ClosedError. */
  close(timeoutMs = 5000): Promise<void> {
    this.#settlements?.close();
    this.#closing ??= this.#decider.end(timeoutMs).then(() => {
      this.#settlements?.end();
      this.#channel?.close();
    });
    return this.#closing;
  }

  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ask(channel: Channel, { message, timeoutMs, hasCosts, holds }: Encoded, signal: AbortSignal | undefined, trace: Record<string, string> | undefined): Promise<Decision> {
    const metadata = this.#headers.make(trace);
    const asked = callUnary(channel, SHOULD_ALLOW, { message, metadata, timeoutMs, signal });
    return hasCosts || holds ? asked.then((decision) => checkAnswer(decision, hasCosts, holds)) : asked;
  }

  /** Returns what makes calls beside decisions. Outages of the beginning of a lease are part of its span. */
  #calls(channel: Channel, trace: Record<string, string> | undefined): Call {
    return async (method, message, timeoutMs, signal) => {
      const metadata = this.#headers.make(trace);
      try {
        return await this.#decider.tracked(callUnary(channel, method, { message, metadata, timeoutMs, signal }));
      } catch (error) {
        if (error instanceof OutageError) this.#decider.outage(error, (method as unknown) !== ACQUIRE);
        throw error;
      }
    };
  }

  #settles(channel: Channel): Settlements {
    if (this.#settlements !== undefined) return this.#settlements;
    const [decider, notice] = [this.#decider, new SettlementNotice()];
    this.#settlements = new Settlements({
      isOpen: () => decider.open,
      record: (event, mistake) => {
        notice.record(event, mistake);
        this.#telemetry?.settlement(event);
      },
      tracked: (promise) => decider.tracked(promise),
    }, this.#calls(channel, undefined));
    return this.#settlements;
  }

  #open(): Channel {
    if (this.#closing !== undefined) throw new ClosedError();
    if (this.#channel !== undefined) return this.#channel;
    // The API is loaded here, not with the package, so that a program can register its SDK first.
    if (this.#settings.telemetry) this.#decider.telemetry = this.#telemetry = installedTelemetry();
    this.#channel = openChannel(this.#settings);
    return this.#channel;
  }
}
