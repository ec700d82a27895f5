// Questions, and what is checked before they are sent.

import { create, toBinary } from "@bufbuild/protobuf";

import { MistakeError } from "./errors.js";
import { ShouldAllowRequestSchema } from "./gen/weir/v1/rate_limit_pb.js";
import { isPolicy, isTimeout, LONGEST_TIMEOUT_MS, type Policy } from "./limiter.js";
import type { Question } from "./limiter.js";

/** The largest message that a server accepts by default. */
const LARGEST_MESSAGE = 65_536;

/** A question that is ready to be sent. */
export interface Encoded {
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly policy: Policy;
}

/** What holds for questions that do not say otherwise. */
export interface Defaults {
  readonly onFailure: Policy;
  readonly timeoutMs: number;
  readonly strategy: string | undefined;
}

/** Checks and encodes a question. Throws MistakeError. */
export function encodeQuestion(question: Question, defaults: Defaults): Encoded {
  const { timeoutMs = defaults.timeoutMs, onFailure = defaults.onFailure } = question;
  if (!isTimeout(timeoutMs)) {
    refuse("timeoutMs", timeoutMs, `a number above 0 and at most ${String(LONGEST_TIMEOUT_MS)}`);
  }
  if (!isPolicy(onFailure)) refuse("onFailure", onFailure, '"allow", "deny" or "error"');
  return { message: bounded(encode(question, defaults)), timeoutMs, policy: onFailure };
}

function encode(question: Question, defaults: Defaults): Uint8Array {
  const { resource, consumer, cost, strategy = defaults.strategy, attributes, peek, atMost, id, headers } = question;
  checkTexts({ resource, consumer, strategy, id }, attributes);
  if (cost !== undefined && !(Number.isSafeInteger(cost) && cost >= 0)) {
    refuse("cost", cost, "a whole number from 0 to 2^53 - 1");
  }
  const message = create(ShouldAllowRequestSchema, {
    resource,
    ...(consumer === undefined ? {} : { consumer }),
    ...(strategy === undefined ? {} : { strategy }),
    ...(cost === undefined ? {} : { cost: BigInt(cost) }),
    ...(attributes === undefined ? {} : { attributes }),
    ...(peek === undefined ? {} : { peek }),
    ...(atMost === undefined ? {} : { atMost }),
    ...(id === undefined ? {} : { id }),
    ...(headers === undefined ? {} : { headers }),
  });
  return toBinary(ShouldAllowRequestSchema, message);
}

function bounded(message: Uint8Array): Uint8Array {
  if (message.length <= LARGEST_MESSAGE) return message;
  const text = `the question has ${String(message.length)} bytes, the bound is ${String(LARGEST_MESSAGE)}`;
  throw new MistakeError("OUT_OF_RANGE", `${text}: shorten its attributes`);
}

/** Throws MistakeError if a field or an attribute is no text. `resource` is required. @internal */
export function checkTexts(fields: Record<string, unknown>, attributes: Record<string, unknown> | undefined): void {
  for (const [field, text] of Object.entries({ ...attributes, ...fields })) {
    if (typeof text !== "string" && (text !== undefined || field === "resource")) refuse(field, text, "a text");
  }
}

/** Throws the MistakeError of a field. @internal */
export function refuse(field: string, value: unknown, wanted: string): never {
  throw new MistakeError("INVALID_ARGUMENT", `${field}: ${String(value)} is not ${wanted}`, field);
}
