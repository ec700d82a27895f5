// One call over gRPC.

import { Metadata, type Client, type ClientUnaryCall, type ServiceError } from "@grpc/grpc-js";
import { fromBinary } from "@bufbuild/protobuf";

import { codeName, isMistakeCode } from "./codes.js";
import { MistakeError, OutageError } from "./errors.js";
import { BadRequestSchema, RichStatusSchema } from "./gen/details_pb.js";
import { timed } from "./timed.js";

/** gRPC's own deadline is later than the client's timer: it would drop an answer that arrived while the process was stalled. */
const DEADLINE_AFTER_TIMER_MS = 1000;

/** A method, and how to read its answer. @internal */
export interface Method<Answer> {
  readonly path: string;
  readonly decode: (bytes: Uint8Array) => Answer;
}

/** A call of a method. @internal */
export interface Outgoing {
  readonly message: Uint8Array;
  readonly metadata: Metadata | Promise<Metadata>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Calls a method. Rejects with OutageError, MistakeError, or the reason of the signal. @internal */
export function callUnary<Answer>(channel: Client, method: Method<Answer>, outgoing: Outgoing): Promise<Answer> {
  const { message, metadata, timeoutMs, signal } = outgoing;
  return timed<Answer>(timeoutMs, signal, ({ resolve, reject, ended }) => {
    let call: ClientUnaryCall | undefined;
    const deadline = Date.now() + timeoutMs + DEADLINE_AFTER_TIMER_MS;
    function start(headers: Metadata): void {
      if (ended()) return;
      call = channel.makeUnaryRequest(method.path, encode, method.decode, message, headers, { deadline }, (error, answer) => {
        if (error !== null) reject(failureOf(error));
        else if (answer === undefined) reject(new OutageError("INTERNAL", "no message received"));
        else resolve(answer);
      });
    }
    if (metadata instanceof Metadata) start(metadata);
    else metadata.then(start).catch(reject);
    return () => call?.cancel();
  });
}

function encode(message: Uint8Array): Buffer {
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

function failureOf(error: ServiceError): OutageError | MistakeError {
  const code = codeName(error.code);
  if (isMistakeCode(code)) return new MistakeError(code, error.details, fieldOf(error.metadata), error);
  return new OutageError(code === "OK" ? "UNKNOWN" : code, error.details, error);
}

// The field is a help. Details that cannot be read are no reason to hide the mistake.
function fieldOf(metadata: Metadata): string | undefined {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!(bytes instanceof Uint8Array)) return undefined;
  try {
    const { details } = fromBinary(RichStatusSchema, bytes);
    const request = details.find(({ typeUrl }) => typeUrl.endsWith("/google.rpc.BadRequest"));
    if (request === undefined) return undefined;
    return fromBinary(BadRequestSchema, request.value).fieldViolations[0]?.field;
  } catch {
    return undefined;
  }
}
