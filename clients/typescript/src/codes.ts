// Names of gRPC codes, and the two kinds of failed calls: outages, which the policy answers, and mistakes of the caller.

/** The names of the codes, by their numbers. @internal */
export const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** The name of a gRPC code. */
export type Code = (typeof CODES)[number];

/** A code that says what the caller did wrong. The policy never answers it. */
export type MistakeCode =
  | "INVALID_ARGUMENT"
  | "NOT_FOUND"
  | "FAILED_PRECONDITION"
  | "ALREADY_EXISTS"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "PERMISSION_DENIED";

/** A code that says that no decision can be had. The policy answers it. */
export type OutageCode = Exclude<Code, MistakeCode | "OK">;

const MISTAKES: ReadonlySet<string> = new Set<MistakeCode>([
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "FAILED_PRECONDITION",
  "ALREADY_EXISTS",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "PERMISSION_DENIED",
]);

/** Returns the name of a number on the wire. A number that gRPC does not define is UNKNOWN. */
export function codeName(code: number): Code {
  return CODES[code] ?? "UNKNOWN";
}

/** Whether a code says what the caller did wrong. */
export function isMistakeCode(code: Code): code is MistakeCode {
  return MISTAKES.has(code);
}
