// Answers over HTTP that are no decision: Connect's errors, and what proxies answer in the place of Weir.

import { CODES, isMistakeCode, type Code } from "./codes.js";
import { MistakeError, OutageError } from "./errors.js";

/** What an answer without a code says. Other statuses are UNKNOWN. */
const BY_STATUS: Partial<Record<number, Code>> = {
  400: "INTERNAL",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "UNIMPLEMENTED",
  429: "UNAVAILABLE",
  499: "CANCELLED",
  501: "UNIMPLEMENTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

interface ConnectError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** Whether an answer is JSON. @internal */
export function isJson(response: Response): boolean {
  return /^application\/json\b/i.test(response.headers.get("content-type") ?? "");
}

/** Returns the error that an answer is. @internal */
export async function failureOf(response: Response): Promise<OutageError | MistakeError> {
  const { status } = response;
  const error = await connectError(response);
  const named = codeOf(error?.code);
  const code = named ?? BY_STATUS[status] ?? "UNKNOWN";
  const text = named === undefined ? `HTTP ${String(status)} that is no answer of Weir; check baseUrl and the proxies` : messageOf(error);
  if (isMistakeCode(code)) return new MistakeError(code, text, named === undefined ? undefined : fieldOf(error?.details));
  return new OutageError(code === "OK" ? "UNKNOWN" : code, text);
}

async function connectError(response: Response): Promise<ConnectError | undefined> {
  if (!isJson(response)) {
    // What is not read would keep the connection.
    await response.body?.cancel().catch(() => undefined);
    return undefined;
  }
  try {
    const value: unknown = await response.json();
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

// Connect spells CANCELLED as `canceled`.
function codeOf(name: unknown): Code | undefined {
  if (name === "canceled") return "CANCELLED";
  return CODES.find((code) => code !== "OK" && code !== "CANCELLED" && code.toLowerCase() === name);
}

function messageOf(error: ConnectError | undefined): string {
  return typeof error?.message === "string" ? error.message : "";
}

// The field is a help. Details that cannot be read are no reason to hide the mistake.
function fieldOf(details: unknown): string | undefined {
  try {
    const all = details as readonly { readonly type?: unknown; readonly value?: unknown }[];
    const found = all.find(({ type }) => type === "google.rpc.BadRequest");
    const bytes = Uint8Array.from(atob(found?.value as string), (letter) => letter.charCodeAt(0));
    const field = firstField(firstField(bytes));
    return field.length === 0 ? undefined : new TextDecoder("utf-8", { fatal: true }).decode(field);
  } catch {
    return undefined;
  }
}

/** Returns the value of field 1 of a message that begins with it. `BadRequest` and its violations have texts and messages there. */
function firstField(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== 0x0a) return new Uint8Array();
  let [length, at] = [0, 1];
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = bytes[at] ?? 0;
    at += 1;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return bytes.subarray(at, at + length);
}
