// The client of Weir over HTTP, for edge runtimes: fetch and JSON, by Connect's protocol. Nothing here needs Node, gRPC or protobuf.

import { fetchToken } from "./bearer.js";
import { checkAnswer } from "./budget.js";
import { checkLength, checkQuestion } from "./checked_question.js";
import { Decider } from "./decider.js";
import type { Decision } from "./decision.js";
import { ClosedError } from "./errors.js";
import { callHttp } from "./http_call.js";
import { httpSettings, type HttpOptions, type HttpSettings } from "./http_options.js";
import type { Limiter, Policy, Question } from "./limiter.js";
import { Telemetry } from "./telemetry.js";

/** A client of Weir over HTTP. Until its first call it starts nothing, so it may be made at the top of a module. */
export class HttpClient implements Limiter {
  readonly #settings: HttpSettings;
  readonly #decider: Decider;
  #begun = false;
  #closing: Promise<void> | undefined;

  /** Checks the options. Neither waits nor fails for the network. Throws ConfigurationError. */
  constructor(baseUrl: string, options: HttpOptions) {
    this.#settings = httpSettings(baseUrl, options);
    this.#decider = new Decider(this.#settings.breaker, () => false);
  }

  /** What an outage answers where a question does not say. */
  get onFailure(): Policy {
    return this.#settings.onFailure;
  }

  /** Asks whether a call may go ahead. A denial is a value. Throws MistakeError, and OutageError if the policy is `"error"`. */
  async allow(question: Question): Promise<Decision> {
    if (this.#closing !== undefined) throw new ClosedError();
    if (!this.#begun) this.#begin();
    const { signal } = question;
    signal?.throwIfAborted();
    const { policy, fields, timeoutMs } = checkQuestion(question, this.#settings);
    const body = JSON.stringify(fields);
    checkLength(new TextEncoder().encode(body).length);
    const { url, fetch = globalThis.fetch } = this.#settings;
    return this.#decider.decide(policy, (trace) => {
      const headers = this.#headers(timeoutMs, trace);
      const asked = callHttp({ url, fetch, headers, body, timeoutMs, signal });
      return fields.costs === undefined ? asked : asked.then((decision) => checkAnswer(decision, true, false));
    });
  }

  /** Ends the client. Calls that are in flight have this time to end; later calls throw ClosedError. */
  close(timeoutMs = 5000): Promise<void> {
    this.#closing ??= this.#decider.end(timeoutMs);
    return this.#closing;
  }

  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin(): void {
    this.#begun = true;
    if (this.#settings.telemetry) void this.#load();
  }

  // No call waits for it, because its timeout must hold: what is asked before it is loaded is not recorded.
  async #load(): Promise<void> {
    try {
      this.#decider.telemetry = new Telemetry(await import("@opentelemetry/api"));
    } catch {
      // It is not installed.
    }
  }

  #headers(timeoutMs: number, trace: Record<string, string> | undefined): Record<string, string> | Promise<Record<string, string>> {
    const { token } = this.#settings;
    const headers = {
      "content-type": "application/json",
      "connect-protocol-version": "1",
      "connect-timeout-ms": String(Math.ceil(timeoutMs)),
      ...trace,
    };
    if (token === undefined) return headers;
    if (typeof token === "string") return { ...headers, authorization: `Bearer ${token}` };
    return fetchToken(token).then((value) => ({ ...headers, authorization: `Bearer ${value}` }));
  }
}
