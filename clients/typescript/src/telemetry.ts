// Traces and metrics of the OpenTelemetry API. Nothing here loads it, and this package never loads an SDK.

import type { Counter, Histogram, MeterProvider, Span, UpDownCounter } from "@opentelemetry/api";

import type { Decision } from "./decision.js";
import { OutageError, WeirError } from "./errors.js";

/** The OpenTelemetry API. @internal */
export type Api = typeof import("@opentelemetry/api");

const NAME = "weir-ratelimit";

interface Instruments {
  readonly decisions: Counter;
  readonly duration: Histogram;
  readonly outages: Counter;
  readonly open: UpDownCounter;
}

/** A call that is being recorded. @internal */
export interface Recorded {
  /** The metadata that carry the context of the trace. */
  readonly trace: Record<string, string>;
  /** Ends the span and counts the outcome. */
  end(outcome: { decision: Decision } | { error: unknown }): void;
}

/** The recorder of a client. @internal */
export class Telemetry {
  readonly #api: Api;
  #provider: MeterProvider | undefined;
  #instruments: Instruments | undefined;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Begins to record a call. */
  begin(name: string, now: () => number): Recorded {
    const { trace, context, propagation, SpanKind } = this.#api;
    const span = trace.getTracer(NAME).startSpan(name, { kind: SpanKind.CLIENT });
    const carrier: Record<string, string> = {};
    propagation.inject(trace.setSpan(context.active(), span), carrier);
    const started = now();
    return {
      trace: carrier,
      end: (outcome) => {
        this.#measured().duration.record((now() - started) / 1000);
        if ("decision" in outcome) this.#decided(span, outcome.decision);
        else this.#failed(span, outcome.error);
        span.end();
      },
    };
  }

  /** Records that the breaker has opened (1) or closed (-1). */
  breaker(change: 1 | -1): void {
    this.#measured().open.add(change);
  }

  /** Counts an outage of a call without a span. */
  outage({ code }: OutageError): void {
    this.#measured().outages.add(1, { code });
  }

  #decided(span: Span, { allowed, source, reason, deniedBy, failure }: Decision): void {
    span.setAttributes({ "weir.allowed": allowed, "weir.source": source, "weir.reason": reason });
    if (deniedBy.length > 0) span.setAttribute("weir.denied_by", [...deniedBy]);
    this.#measured().decisions.add(1, { outcome: allowed ? "allowed" : "denied", source, reason });
    if (failure !== undefined) this.outage(failure);
  }

  #failed(span: Span, error: unknown): void {
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    if (error instanceof OutageError) this.outage(error);
    const outcome = error instanceof WeirError ? "error" : "cancelled";
    this.#measured().decisions.add(1, { outcome });
  }

  // Instruments of a provider that was registered later are others.
  #measured(): Instruments {
    const provider = this.#api.metrics.getMeterProvider();
    if (this.#instruments !== undefined && this.#provider === provider) return this.#instruments;
    const meter = provider.getMeter(NAME);
    this.#provider = provider;
    this.#instruments = {
      decisions: meter.createCounter("weir.client.decisions", { description: "Decisions by outcome, source and reason" }),
      duration: meter.createHistogram("weir.client.duration", { description: "Time of a decision", unit: "s" }),
      outages: meter.createCounter("weir.client.outages", { description: "Outages by code" }),
      open: meter.createUpDownCounter("weir.client.breaker.open", { description: "Breakers that are open" }),
    };
    return this.#instruments;
  }
}
