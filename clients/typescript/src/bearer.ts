// Tokens of callers. Nothing here needs Node or gRPC.

import { ConfigurationError, OutageError } from "./errors.js";

/** A token, or a function that returns one for each call. @internal */
export type Token = string | (() => string | Promise<string>);

/** Whether a value can be sent as a token. @internal */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

/** Checks that a token can be sent, and that nobody can read it on the way. Its value is never part of a text. @internal */
export function checkToken(token: unknown, place: { readonly private: boolean; readonly text: string; readonly remedy: string }): void {
  if (token === undefined) return;
  if (typeof token !== "function" && !isToken(token)) {
    throw new ConfigurationError("token: not a text of visible ASCII characters, and not a function");
  }
  if (place.private) return;
  throw new ConfigurationError(
    `token: it would be sent in plain text to ${place.text}; ${place.remedy}, or insecureToken: true if the network is trusted`,
  );
}

/** Calls a token function. Rejects with OutageError if there is no token: keys rotate, and a site must go on. @internal */
export async function fetchToken(token: () => string | Promise<string>): Promise<string> {
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
