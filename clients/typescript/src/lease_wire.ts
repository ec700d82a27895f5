// The messages of leases.

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";

import { decisionOf, type Decision } from "./decision.js";
import { durationMs, durationOf, reasonOf } from "./from_wire.js";
import {
  AcquireRequestSchema,
  AcquireResponseSchema,
  ReleaseRequestSchema,
  ReleaseResponseSchema,
  RenewRequestSchema,
  RenewResponseSchema,
  WorkOutcome as WireOutcome,
  type AcquireResponse,
} from "./gen/weir/v1/leases_pb.js";
import type { LeaseQuestion, WorkOutcome } from "./lease.js";
import { refuse, checkTexts } from "./checked_question.js";
import type { Method } from "./unary.js";

/** The answer to a question for a lease. @internal */
export interface Acquired {
  readonly decision: Decision;
  /** Empty: the work may begin without a lease. */
  readonly id: string;
  readonly expiresMs: number | undefined;
}

/** The answer to a renewal. @internal */
export interface Renewed {
  readonly held: boolean;
  readonly expiresMs: number | undefined;
}

/** @internal */
export const ACQUIRE: Method<Acquired> = {
  path: "/weir.v1.ConcurrencyService/Acquire",
  decode: (bytes) => acquiredOf(fromBinary(AcquireResponseSchema, bytes)),
};

/** @internal */
export const RENEW: Method<Renewed> = {
  path: "/weir.v1.ConcurrencyService/Renew",
  decode: (bytes) => {
    const { held, expiresAfter } = fromBinary(RenewResponseSchema, bytes);
    return { held, expiresMs: expiresAfter && durationMs(expiresAfter) };
  },
};

/** @internal */
export const RELEASE: Method<boolean> = {
  path: "/weir.v1.ConcurrencyService/Release",
  decode: (bytes) => fromBinary(ReleaseResponseSchema, bytes).held,
};

const OUTCOMES: Record<WorkOutcome, WireOutcome> = {
  success: WireOutcome.SUCCESS,
  dropped: WireOutcome.DROPPED,
  ignored: WireOutcome.IGNORED,
};

/** The messages of one lease. @internal */
export class LeaseMessages {
  readonly #place: { resource: string; id: string; consumer: string; strategy: string; attributes: Record<string, string> };
  readonly #question: LeaseQuestion;

  /** Checks the question. Throws MistakeError. */
  constructor(question: LeaseQuestion, strategy: string | undefined, id: string) {
    const { resource, weight, ttlMs, waitMs, attributes } = question;
    checkTexts({ resource, consumer: question.consumer, strategy: question.strategy }, attributes);
    if (weight !== undefined && !(Number.isSafeInteger(weight) && weight >= 1)) {
      refuse("weight", weight, "a whole number from 1 to 2^53 - 1");
    }
    if (ttlMs !== undefined && !(ttlMs > 0 && ttlMs <= Number.MAX_SAFE_INTEGER)) refuse("ttlMs", ttlMs, "a number above 0");
    if (waitMs !== undefined && !(waitMs >= 0 && waitMs < 2 ** 31)) refuse("waitMs", waitMs, "a number from 0 to 2^31 - 1");
    this.#question = question;
    this.#place = {
      resource,
      id,
      consumer: question.consumer ?? "",
      strategy: question.strategy ?? strategy ?? "",
      attributes: attributes ?? {},
    };
  }

  acquire(): Uint8Array {
    const { weight } = this.#question;
    const fields = { ...this.#place, ...this.#ttl(), ...(weight === undefined ? {} : { weight: BigInt(weight) }) };
    return toBinary(AcquireRequestSchema, create(AcquireRequestSchema, fields));
  }

  renew(): Uint8Array {
    return toBinary(RenewRequestSchema, create(RenewRequestSchema, { ...this.#place, ...this.#ttl() }));
  }

  release(outcome: WorkOutcome): Uint8Array {
    const fields = { ...this.#place, outcome: OUTCOMES[outcome] };
    return toBinary(ReleaseRequestSchema, create(ReleaseRequestSchema, fields));
  }

  #ttl(): { ttl?: Duration } {
    const { ttlMs } = this.#question;
    return ttlMs === undefined ? {} : { ttl: durationOf(ttlMs) };
  }
}

function acquiredOf(response: AcquireResponse): Acquired {
  const { allowed, id, expiresAfter, limit, remaining, reason, message, degraded } = response;
  const decision = decisionOf({
    allowed,
    source: "weir",
    degraded,
    reason: reasonOf(reason),
    deniedBy: [],
    limits: [],
    headers: {},
    local: false,
    approximate: false,
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    ...(remaining === undefined ? {} : { remaining: Number(remaining) }),
    ...(message === "" ? {} : { message }),
  });
  return { decision, id, expiresMs: expiresAfter && durationMs(expiresAfter) };
}
