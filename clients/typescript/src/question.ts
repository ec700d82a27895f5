// Questions as messages of gRPC.

import { create, toBinary } from "@bufbuild/protobuf";

import { checkLength, checkQuestion, type Defaults } from "./checked_question.js";
import { ShouldAllowRequestSchema } from "./gen/weir/v1/rate_limit_pb.js";
import type { Policy, Question } from "./limiter.js";

/** A question that is ready to be sent. */
export interface Encoded {
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly policy: Policy;
}

/** Checks and encodes a question. Throws MistakeError. */
export function encodeQuestion(question: Question, defaults: Defaults): Encoded {
  const { fields, timeoutMs, policy } = checkQuestion(question, defaults);
  const { cost, ...rest } = fields;
  const message = create(ShouldAllowRequestSchema, { ...rest, ...(cost === undefined ? {} : { cost: BigInt(cost) }) });
  const bytes = toBinary(ShouldAllowRequestSchema, message);
  checkLength(bytes.length);
  return { message: bytes, timeoutMs, policy };
}
