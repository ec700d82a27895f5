// What all middleware share: from a request to a verdict. Nothing here needs Node or a framework.

import { policyDecision, type Decision } from "./decision.js";
import { ConfigurationError, MistakeError, OutageError } from "./errors.js";
import type { Limiter, Question } from "./limiter.js";

const LONGEST_BYTES = 512;

type Awaitable<T> = T | Promise<T>;

/** Options of every middleware. `Request` is what the framework gives its handlers. */
export interface MiddlewareOptions<Request> {
  /** The resource that is used. */
  resource: string | ((request: Request) => Awaitable<string>);
  /** Who uses it. Never take it from a header that callers can write. */
  consumer: (request: Request) => Awaitable<string | undefined>;
  /** How much the request takes. 1 if not set. */
  cost?: number | ((request: Request) => Awaitable<number>);
  /** Further facts about the request. */
  attributes?: (request: Request) => Awaitable<Record<string, string>>;
  /** Requests that pass unasked. */
  skip?: (request: Request) => Awaitable<boolean>;
  /**
   * What a request gets without a consumer, or with a consumer or an attribute above 512 bytes: `"deny"`, the default, is
   * 403, `"skip"` passes unasked, and any other text is the consumer.
   */
  missing?: string;
  /** Whether answers have the headers of the limit. True if not set. */
  headers?: boolean;
  /** Whether to hold a request for as long as the strategy says. True if not set. */
  hold?: boolean;
  /** What a mistake gets, such as an unknown strategy: `"error"`, the default, is the framework's 500; or the policy. */
  onMistake?: "error" | "policy";
}

/** What becomes of a request. @internal */
export type Verdict =
  | { readonly kind: "pass"; readonly headers: Record<string, string> }
  | { readonly kind: "deny"; readonly decision: Decision | undefined; readonly answer: Denial }
  /** The caller has left: nobody reads an answer. */
  | { readonly kind: "left" };

/** The HTTP answer to a request that is denied. @internal */
export interface Denial {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

/** Checks the options that all middleware share. Throws ConfigurationError. @internal */
export function checkOptions<Request>(client: Limiter, options: MiddlewareOptions<Request>): void {
  const given = options as unknown as Partial<Record<string, unknown>>;
  if (typeof (client as Partial<Limiter> | undefined)?.allow !== "function") {
    throw new ConfigurationError("client: required, a Client or a fake");
  }
  const { resource, consumer, onMistake = "error" } = given;
  if (typeof consumer !== "function") {
    throw new ConfigurationError("consumer: required, a function such as clientAddress({ hops: 1 })");
  }
  if (typeof resource !== "function" && (typeof resource !== "string" || resource === "")) {
    throw new ConfigurationError("resource: required, a text or a function");
  }
  if (onMistake !== "error" && onMistake !== "policy") {
    throw new ConfigurationError(`onMistake: ${String(onMistake)} is not "error" or "policy"`);
  }
}

/**
 * Asks about a request, and holds it if the strategy says so. The signal aborts when the caller leaves. Throws what the
 * framework answers with its error page. @internal
 */
export async function judge<Request>(
  client: Limiter,
  options: MiddlewareOptions<Request>,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Verdict> {
  try {
    return await verdict(client, options, request, signal);
  } catch (error) {
    if (signal?.aborted === true) return { kind: "left" };
    throw error;
  }
}

async function verdict<Request>(
  client: Limiter,
  options: MiddlewareOptions<Request>,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Verdict> {
  if ((await options.skip?.(request)) === true) return { kind: "pass", headers: {} };
  const { missing = "deny", headers = true, hold = true } = options;
  const found = await options.consumer(request);
  const attributes = await options.attributes?.(request);
  const complete = isComplete(found) && Object.values(attributes ?? {}).every(fits);
  if (!complete && missing === "skip") return { kind: "pass", headers: {} };
  if (!complete && missing === "deny") {
    return { kind: "deny", decision: undefined, answer: { status: 403, headers: {}, text: "The caller is not known" } };
  }
  const { resource, cost } = options;
  const decision = await decide(client, options, {
    resource: typeof resource === "function" ? await resource(request) : resource,
    consumer: complete ? found : missing,
    headers,
    ...(cost === undefined ? {} : { cost: typeof cost === "function" ? await cost(request) : cost }),
    ...(attributes === undefined || !complete ? {} : { attributes }),
    ...(signal === undefined ? {} : { signal }),
  });
  const answer = decision.http();
  const shown = headers ? answer.headers : {};
  if (answer.status !== undefined) {
    const text = decision.message ?? "Rate limit exceeded";
    return { kind: "deny", decision, answer: { status: answer.status, headers: shown, text } };
  }
  const stays = await held(hold ? (decision.waitMs ?? 0) : 0, signal);
  return stays ? { kind: "pass", headers: shown } : { kind: "left" };
}

async function decide<Request>(client: Limiter, options: MiddlewareOptions<Request>, question: Question): Promise<Decision> {
  try {
    return await client.allow(question);
  } catch (error) {
    if (!(error instanceof MistakeError) || options.onMistake !== "policy" || client.onFailure === "error") throw error;
    return policyDecision(client.onFailure === "allow", new OutageError("UNKNOWN", "a mistake", error));
  }
}

function isComplete(consumer: string | undefined): consumer is string {
  return typeof consumer === "string" && consumer !== "" && fits(consumer);
}

function fits(text: string): boolean {
  return new TextEncoder().encode(text).length <= LONGEST_BYTES;
}

/** Waits, and returns whether the caller is still there. */
function held(waitMs: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted === true) return Promise.resolve(false);
  if (waitMs <= 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const leave = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve(true);
    }, waitMs);
    signal?.addEventListener("abort", leave, { once: true });
  });
}

/** Whether a request is the preflight of a browser. It carries no credentials, so there is nobody to ask about. @internal */
export function isPreflight(method: string | undefined, header: (name: string) => unknown): boolean {
  return method === "OPTIONS" && Boolean(header("origin")) && Boolean(header("access-control-request-method"));
}
