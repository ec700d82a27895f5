// Questions as messages of gRPC.

import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";

import { checkLength, checkQuestion, type Defaults } from "./checked_question.js";
import { CostSchema, ShouldAllowRequestSchema, type ShouldAllowRequest } from "./gen/weir/v1/rate_limit_pb.js";
import { durationOf } from "./from_wire.js";
import type { Cost, Policy, Question } from "./limiter.js";

/** A question that is ready to be sent. */
export interface Encoded {
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly policy: Policy;
  /** What an old server would leave out: costs by name, and the hold. */
  readonly hasCosts: boolean;
  readonly holds: boolean;
}

/** Checks and encodes a question. Throws MistakeError. */
export function encodeQuestion(question: Question, defaults: Defaults, holdForMs?: number): Encoded {
  const { fields, timeoutMs, policy } = checkQuestion(question, defaults);
  const { cost, costs, ...rest } = fields;
  // Protobuf leaves out what is undefined, which its types do not say.
  const set = { ...rest, cost: cost === undefined ? undefined : BigInt(cost) } as MessageInitShape<typeof ShouldAllowRequestSchema>;
  const message = create(ShouldAllowRequestSchema, set);
  if (costs !== undefined) message.costs = Object.fromEntries(Object.entries(costs).map(([name, one]) => [name, costOf(one)]));
  if (holdForMs !== undefined) message.holdFor = durationOf(holdForMs);
  const bytes = toBinary(ShouldAllowRequestSchema, message);
  checkLength(bytes.length);
  return { message: bytes, timeoutMs, policy, hasCosts: costs !== undefined, holds: holdForMs !== undefined };
}

function costOf({ cost, atLeast }: Cost): ShouldAllowRequest["costs"][string] {
  return create(CostSchema, { cost: BigInt(cost), ...(atLeast === undefined ? {} : { atLeast: BigInt(atLeast) }) });
}
