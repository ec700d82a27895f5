// The metadata of calls: the token, and the context of the trace.

import { Metadata } from "@grpc/grpc-js";

import { OutageError } from "./errors.js";
import { isToken } from "./options.js";

type Token = string | (() => string | Promise<string>) | undefined;

/** Makes the metadata of calls. @internal */
export class Headers {
  readonly #token: Token;
  /** gRPC copies metadata before it adds to them, so calls without a trace can share one object. */
  readonly #shared = new Metadata();

  constructor(token: Token) {
    this.#token = token;
    if (typeof token === "string") this.#shared.set("authorization", `Bearer ${token}`);
  }

  /** Returns the metadata of a call. Rejects with OutageError if there is no token: keys rotate, and a site must go on. */
  make(trace: Record<string, string> | undefined): Metadata | Promise<Metadata> {
    if (typeof this.#token === "function") return this.#fetched(this.#token, trace);
    if (trace === undefined) return this.#shared;
    return traced(this.#shared.clone(), trace);
  }

  async #fetched(token: () => string | Promise<string>, trace: Record<string, string> | undefined): Promise<Metadata> {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${await valueOf(token)}`);
    return trace === undefined ? metadata : traced(metadata, trace);
  }
}

async function valueOf(token: () => string | Promise<string>): Promise<string> {
  let value: unknown;
  try {
    value = await token();
  } catch (error) {
    throw new OutageError("UNAUTHENTICATED", "the token function failed", error);
  }
  if (!isToken(value)) {
    throw new OutageError("UNAUTHENTICATED", "the token function returned no text of visible ASCII characters");
  }
  return value;
}

function traced(metadata: Metadata, trace: Record<string, string>): Metadata {
  for (const [name, value] of Object.entries(trace)) metadata.set(name, value);
  return metadata;
}
