// How a lease begins.

import { randomBytes } from "node:crypto";

import { policyDecision } from "./decision.js";
import { LeaseRefusedError, OutageError } from "./errors.js";
import { ATTEMPT_MS, HeldLease, releaseLease, type Call } from "./held_lease.js";
import type { Lease, LeaseQuestion } from "./lease.js";
import { ACQUIRE, LeaseMessages, type Acquired } from "./lease_wire.js";
import { isPolicy, type Policy } from "./limiter.js";
import { refuse, type Defaults } from "./checked_question.js";

const SHORTEST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/**
 * Acquires a lease. While permits are missing or no server answers, it asks again under the same id, for as long as the question
 * waits. Throws LeaseRefusedError, MistakeError, OutageError, or the reason of the signal. @internal
 */
export async function acquireLease(question: LeaseQuestion, defaults: Defaults, call: Call): Promise<Lease> {
  const { onFailure = defaults.onFailure, waitMs = 0, signal } = question;
  if (!isPolicy(onFailure)) refuse("onFailure", onFailure, '"allow", "deny" or "error"');
  signal?.throwIfAborted();
  const messages = new LeaseMessages(question, defaults.strategy, randomBytes(16).toString("base64url"));
  const until = performance.now() + waitMs;
  for (let pause = SHORTEST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const sentAt = performance.now();
    const outcome = await attempt(messages, call, signal);
    const left = until - performance.now();
    const final = !(outcome instanceof OutageError) && (outcome.decision.allowed || outcome.decision.reason !== "limited");
    if (final || left <= 0) return begun(outcome, onFailure, messages, call, sentAt);
    await paused(Math.min(left, pause * (0.5 + Math.random() / 2)), signal);
  }
}

async function attempt(messages: LeaseMessages, call: Call, signal?: AbortSignal): Promise<Acquired | OutageError> {
  try {
    return await call(ACQUIRE, messages.acquire(), ATTEMPT_MS, signal);
  } catch (error) {
    // The answer may be on its way: what it grants is given back.
    if (signal?.aborted === true) void releaseLease(messages, call, "ignored");
    if (error instanceof OutageError) return error;
    throw error;
  }
}

function begun(outcome: Acquired | OutageError, policy: Policy, messages: LeaseMessages, call: Call, sentAt: number): Lease {
  if (outcome instanceof OutageError) {
    // The answer may be lost, and the lease be held all the same.
    void releaseLease(messages, call, "ignored");
    if (policy === "error") throw outcome;
    const decision = policyDecision(policy === "allow", outcome);
    if (!decision.allowed) throw new LeaseRefusedError(decision);
    return new HeldLease(decision, messages, call, undefined);
  }
  const { decision, id, expiresMs } = outcome;
  if (!decision.allowed) throw new LeaseRefusedError(decision);
  const isLease = id !== "" && expiresMs !== undefined;
  return new HeldLease(decision, messages, call, isLease ? { sentAt, ttlMs: expiresMs } : undefined);
}

function paused(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason of a signal may be anything
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
