// The errors of this package. A denial is no error, except where a lease or a meter cannot begin.

import type { MistakeCode, OutageCode } from "./codes.js";
import type { Decision } from "./decision.js";

/** The base class of all errors of this package. */
export class WeirError extends Error {
  override name = "WeirError";
}

/** No decision can be had: Weir is away, late, overloaded, or does not accept the credentials. */
export class OutageError extends WeirError {
  override name = "OutageError";
  /** The gRPC code. */
  readonly code: OutageCode;

  /** @internal */
  constructor(code: OutageCode, message: string, cause?: unknown) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The question is wrong: an unknown strategy, a field out of its bounds, a missing right. It is thrown whatever the policy is. */
export class MistakeError extends WeirError {
  override name = "MistakeError";
  /** The gRPC code. */
  readonly code: MistakeCode;
  /** The field that is wrong, if Weir names one. */
  readonly field: string | undefined;

  /** @internal */
  constructor(code: MistakeCode, message: string, field?: string, cause?: unknown) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.field = field;
  }
}

/** An option of a client or of a middleware is wrong. */
export class ConfigurationError extends WeirError {
  override name = "ConfigurationError";
}

/** The client is closed. */
export class ClosedError extends WeirError {
  override name = "ClosedError";

  /** @internal */
  constructor() {
    super("the client is closed");
  }
}

/** What cannot begin, because it is denied. @internal */
export class RefusedError extends WeirError {
  /** The denial, also of the policy. */
  readonly decision: Decision;

  /** @internal */
  constructor(decision: Decision, message: string) {
    super(message);
    this.decision = decision;
  }
}

/** A lease cannot begin: it is denied. */
export class LeaseRefusedError extends RefusedError {
  override name = "LeaseRefusedError";

  /** @internal */
  constructor(decision: Decision) {
    super(decision, `the lease is denied (${decision.reason}): ${decision.message ?? "no permits are free"}`);
  }
}

/** A meter cannot begin: its estimate is denied. */
export class BudgetRefusedError extends RefusedError {
  override name = "BudgetRefusedError";

  /** @internal */
  constructor(decision: Decision) {
    super(decision, `the budget is denied (${decision.reason}): ${decision.message ?? "the estimate does not fit"}`);
  }
}

/** A lease has ended before it was released: others may hold its permits, so the work must stop. */
export class LeaseLostError extends WeirError {
  override name = "LeaseLostError";

  /** @internal */
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
  }
}
