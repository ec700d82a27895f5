// A gRPC server in the process of the test.

import { create, fromBinary, toBinary, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type Metadata, type sendUnaryData, type ServerUnaryCall, type ServiceError } from "@grpc/grpc-js";

import {
  AcquireRequestSchema,
  AcquireResponseSchema,
  ReleaseRequestSchema,
  ReleaseResponseSchema,
  RenewRequestSchema,
  RenewResponseSchema,
  type AcquireRequest,
  type ReleaseRequest,
  type RenewRequest,
} from "../../src/gen/weir/v1/leases_pb.js";
import {
  ShouldAllowRequestSchema,
  ShouldAllowResponseSchema,
  type ShouldAllowRequest,
} from "../../src/gen/weir/v1/rate_limit_pb.js";

type Answer = MessageInitShape<typeof ShouldAllowResponseSchema>;
export type Call = ServerUnaryCall<ShouldAllowRequest, Answer>;
/** Answers, throws a status `{ code, details }`, or returns nothing to stay silent. */
export type Handler = (call: Call) => Answer | undefined;

/** Answers of the three methods of leases. */
export interface Leases {
  acquire: (request: AcquireRequest) => MessageInitShape<typeof AcquireResponseSchema> | undefined;
  renew?: (request: RenewRequest) => MessageInitShape<typeof RenewResponseSchema> | undefined;
  release?: (request: ReleaseRequest) => MessageInitShape<typeof ReleaseResponseSchema> | undefined;
}

export interface TestServer extends AsyncDisposable {
  readonly target: string;
  readonly asked: ShouldAllowRequest[];
}

export async function startLeases({ acquire, renew = () => ({ held: true }), release = () => ({ held: true }) }: Leases, seen: (metadata: Metadata) => void = () => undefined): Promise<TestServer> {
  const server = new Server();
  const service = "/weir.v1.ConcurrencyService";
  server.addService(
    {
      acquire: method(`${service}/Acquire`, AcquireRequestSchema, AcquireResponseSchema),
      renew: method(`${service}/Renew`, RenewRequestSchema, RenewResponseSchema),
      release: method(`${service}/Release`, ReleaseRequestSchema, ReleaseResponseSchema),
    },
    { acquire: answering(acquire, seen), renew: answering(renew, seen), release: answering(release, seen) },
  );
  return listening(server, [], ServerCredentials.createInsecure(), 0);
}

function method<I extends DescMessage, O extends DescMessage>(path: string, input: I, output: O) {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (request: MessageShape<I>) => Buffer.from(toBinary(input, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
    responseSerialize: (answer: MessageInitShape<O>) => Buffer.from(toBinary(output, create(output, answer))),
    responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
  };
}

function answering<I, O>(handler: (request: I) => O | undefined, seen: (metadata: Metadata) => void = () => undefined) {
  return (call: ServerUnaryCall<I, O>, done: sendUnaryData<O>) => {
    seen(call.metadata);
    try {
      const answer = handler(call.request);
      if (answer !== undefined) done(null, answer);
    } catch (status) {
      done(status as ServiceError);
    }
  };
}

export async function startServer(handler: Handler, credentials = ServerCredentials.createInsecure(), port = 0): Promise<TestServer> {
  const asked: ShouldAllowRequest[] = [];
  const server = new Server();
  server.addService(
    { shouldAllow: method("/weir.v1.RateLimitService/ShouldAllow", ShouldAllowRequestSchema, ShouldAllowResponseSchema) },
    {
      shouldAllow: (call: Call, done: sendUnaryData<Answer>) => {
        asked.push(call.request);
        answering(() => handler(call))(call, done);
      },
    },
  );
  return listening(server, asked, credentials, port);
}

async function listening(server: Server, asked: ShouldAllowRequest[], credentials: ServerCredentials, port: number): Promise<TestServer> {
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${String(port)}`, credentials, (error, found) => {
      if (error === null) resolve(found);
      else reject(error);
    });
  });
  return {
    target: `127.0.0.1:${String(bound)}`,
    asked,
    [Symbol.asyncDispose]: () => {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}
