// The metadata of calls over gRPC: the token, and the context of the trace.

import { Metadata } from "@grpc/grpc-js";

import { fetchToken, type Token } from "./bearer.js";

/** Makes the metadata of calls. @internal */
export class Headers {
  readonly #token: Token | undefined;
  /** gRPC copies metadata before it adds to them, so calls without a trace can share one object. */
  readonly #shared = new Metadata();

  constructor(token: Token | undefined) {
    this.#token = token;
    if (typeof token === "string") this.#shared.set("authorization", `Bearer ${token}`);
  }

  /** Returns the metadata of a call. Rejects with OutageError if there is no token. */
  make(trace: Record<string, string> | undefined): Metadata | Promise<Metadata> {
    if (typeof this.#token === "function") return this.#fetched(this.#token, trace);
    if (trace === undefined) return this.#shared;
    return traced(this.#shared.clone(), trace);
  }

  async #fetched(token: () => string | Promise<string>, trace: Record<string, string> | undefined): Promise<Metadata> {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${await fetchToken(token)}`);
    return trace === undefined ? metadata : traced(metadata, trace);
  }
}

function traced(metadata: Metadata, trace: Record<string, string>): Metadata {
  for (const [name, value] of Object.entries(trace)) metadata.set(name, value);
  return metadata;
}
