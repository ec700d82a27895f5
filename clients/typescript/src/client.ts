// The client of Weir over gRPC.

import { fromBinary } from "@bufbuild/protobuf";
import type { Client as Channel } from "@grpc/grpc-js";

import { acquireLease } from "./acquire.js";
import { Breaker } from "./breaker.js";
import { isConnected, openChannel } from "./channel.js";
import { policyDecision, type Decision } from "./decision.js";
import { ClosedError, MistakeError, OutageError } from "./errors.js";
import { decisionFromWire } from "./from_wire.js";
import { ShouldAllowResponseSchema } from "./gen/weir/v1/rate_limit_pb.js";
import type { Lease, LeaseQuestion } from "./lease.js";
import type { Limiter, Policy, Question } from "./limiter.js";
import { Notice } from "./notice.js";
import { settingsOf, type Options, type Settings } from "./options.js";
import { encodeQuestion, type Encoded } from "./question.js";
import { Telemetry, type Recorded } from "./telemetry.js";
import { Headers } from "./token.js";
import { callUnary, type Method } from "./unary.js";

const SHOULD_ALLOW: Method<Decision> = {
  path: "/weir.v1.RateLimitService/ShouldAllow",
  decode: (bytes) => decisionFromWire(fromBinary(ShouldAllowResponseSchema, bytes)),
};

const now = (): number => performance.now();

/** A client of Weir. One client serves a whole process; it connects at the first call. */
export class Client implements Limiter {
  readonly #settings: Settings;
  readonly #headers: Headers;
  readonly #breaker: Breaker | undefined;
  readonly #notice = new Notice();
  #telemetry: Telemetry | undefined;
  #channel: Channel | undefined;
  #closing: Promise<void> | undefined;
  #inFlight = 0;
  #idle: (() => void) | undefined;

  /** Checks the options. Neither waits nor fails for the network. Throws ConfigurationError. */
  constructor(target: string, options: Options) {
    this.#settings = settingsOf(target, options);
    this.#headers = new Headers(this.#settings.token);
    this.#breaker = this.#settings.breaker ? new Breaker() : undefined;
  }

  /** What an outage answers where a question does not say. */
  get onFailure(): Policy {
    return this.#settings.onFailure;
  }

  /** Asks whether a call may go ahead. A denial is a value. Throws MistakeError, and OutageError if the policy is `"error"`. */
  async allow(question: Question): Promise<Decision> {
    const channel = this.#open();
    question.signal?.throwIfAborted();
    const encoded = encodeQuestion(question, this.#settings);
    const recorded = this.#telemetry?.begin(now);
    try {
      const decision = await this.#tracked(this.#decide(channel, encoded, question.signal, recorded));
      recorded?.end({ decision });
      return decision;
    } catch (error) {
      recorded?.end({ error });
      throw error;
    }
  }

  /**
   * Acquires permits, and renews them until they are released. Throws LeaseRefusedError for a denial, MistakeError, and OutageError
   * if the policy is `"error"`.
   */
  lease(question: LeaseQuestion): Promise<Lease> {
    const channel = this.#open();
    return this.#tracked(acquireLease(question, this.#settings, (method, message, timeoutMs, signal) => {
      const metadata = this.#headers.make(undefined);
      return this.#tracked(callUnary(channel, method, { message, metadata, timeoutMs, signal }));
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
    this.#closing ??= this.#end(timeoutMs);
    return this.#closing;
  }

  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(): Channel {
    if (this.#closing !== undefined) throw new ClosedError();
    if (this.#channel !== undefined) return this.#channel;
    // The API is loaded here, not with the package, so that a program can register its SDK first.
    if (this.#settings.telemetry) this.#telemetry = Telemetry.load();
    this.#channel = openChannel(this.#settings);
    return this.#channel;
  }

  /** Keeps the channel open until a promise has settled, or the time of `close` is over. */
  async #tracked<T>(promise: Promise<T>): Promise<T> {
    this.#inFlight += 1;
    try {
      return await promise;
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#idle?.();
    }
  }

  async #decide(channel: Channel, encoded: Encoded, signal: AbortSignal | undefined, recorded?: Recorded): Promise<Decision> {
    const breaker = this.#breaker;
    if (breaker?.open === true && !breaker.admits(now(), isConnected(channel))) {
      return answer(encoded.policy, breaker.openError);
    }
    try {
      const metadata = this.#headers.make(recorded?.trace);
      const decision = await callUnary(channel, SHOULD_ALLOW, { ...encoded, metadata, signal });
      this.#answered();
      return decision;
    } catch (error) {
      if (error instanceof MistakeError) this.#answered();
      if (!(error instanceof OutageError)) throw error;
      this.#failed(channel, error);
      return answer(encoded.policy, error);
    }
  }

  #answered(): void {
    if (this.#breaker?.open === true) this.#telemetry?.breaker(-1);
    this.#breaker?.answered();
  }

  #failed(channel: Channel, outage: OutageError): void {
    this.#notice.outage(now(), outage);
    const breaker = this.#breaker;
    if (breaker === undefined) return;
    const open = breaker.open;
    breaker.failed(now(), isConnected(channel), outage);
    if (breaker.open && !open) this.#telemetry?.breaker(1);
  }

  async #end(timeoutMs: number): Promise<void> {
    if (this.#inFlight > 0) await this.#drained(timeoutMs);
    if (this.#breaker?.open === true) this.#telemetry?.breaker(-1);
    this.#channel?.close();
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

function answer(policy: Policy, outage: OutageError): Decision {
  if (policy === "error") throw outage;
  return policyDecision(policy === "allow", outage);
}
