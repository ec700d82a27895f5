// Leases: permits that are held while work is done.

import type { Decision } from "./decision.js";
import type { Policy } from "./limiter.js";

/** Asks for a lease. */
export interface LeaseQuestion {
  /** The resource that is used. 1 to 512 bytes. */
  resource: string;
  /** Who uses it. */
  consumer?: string;
  /** How many permits the lease holds. 1 if not set. */
  weight?: number;
  /** How long the lease lasts without being renewed. That of the strategy if not set. */
  ttlMs?: number;
  /** How long to wait for permits, and for a server. 0 if not set. */
  waitMs?: number;
  /** A configured strategy. If not set: that of the client, or the one that the configuration gives the resource. */
  strategy?: string;
  /** Further facts about the call. */
  attributes?: Record<string, string>;
  /** What an outage answers. That of the client if not set. */
  onFailure?: Policy;
  /** Ends the waiting: the promise is rejected with the reason of the signal. It does not end a lease that is held. */
  signal?: AbortSignal;
}

/** How the work under a lease went. `"dropped"`: a timeout or a refusal of the resource. `"ignored"`: its time says nothing. */
export type WorkOutcome = "success" | "dropped" | "ignored";

/** Permits that are held. `await using` releases them as a success. */
export interface Lease extends AsyncDisposable {
  /** Aborts with a LeaseLostError when the lease is lost: the work must stop. */
  readonly signal: AbortSignal;
  /** Whether the work may go on: the lease is neither lost nor released. */
  readonly held: boolean;
  /** The decision that granted it. */
  readonly decision: Decision;
  /** Gives the permits back, once. A lease that was lost is released as `"ignored"`. Never rejects: an outage ends the lease later. */
  release(outcome?: WorkOutcome): Promise<void>;
}
