// A gRPC server in the process of the test.

import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall, type ServiceError } from "@grpc/grpc-js";

import {
  ShouldAllowRequestSchema,
  ShouldAllowResponseSchema,
  type ShouldAllowRequest,
} from "../../src/gen/weir/v1/rate_limit_pb.js";

export type Call = ServerUnaryCall<ShouldAllowRequest, MessageInitShape<typeof ShouldAllowResponseSchema>>;
/** Answers, throws a status `{ code, details }`, or returns nothing to stay silent. */
export type Handler = (call: Call) => MessageInitShape<typeof ShouldAllowResponseSchema> | undefined | Promise<undefined>;

export interface TestServer extends AsyncDisposable {
  readonly target: string;
  readonly asked: ShouldAllowRequest[];
}

export async function startServer(handler: Handler, credentials = ServerCredentials.createInsecure(), port = 0): Promise<TestServer> {
  const asked: ShouldAllowRequest[] = [];
  const server = new Server();
  const shouldAllow = {
    path: "/weir.v1.RateLimitService/ShouldAllow",
    requestStream: false,
    responseStream: false,
    requestSerialize: (request: ShouldAllowRequest) => Buffer.from(toBinary(ShouldAllowRequestSchema, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(ShouldAllowRequestSchema, bytes),
    responseSerialize: (answer: MessageInitShape<typeof ShouldAllowResponseSchema>) =>
      Buffer.from(toBinary(ShouldAllowResponseSchema, create(ShouldAllowResponseSchema, answer))),
    responseDeserialize: (bytes: Buffer) => fromBinary(ShouldAllowResponseSchema, bytes),
  };
  server.addService(
    { shouldAllow },
    {
      shouldAllow: (call: Call, done: sendUnaryData<MessageInitShape<typeof ShouldAllowResponseSchema>>) => {
        asked.push(call.request);
        try {
          const answer = handler(call);
          if (answer !== undefined && !(answer instanceof Promise)) done(null, answer);
        } catch (status) {
          done(status as ServiceError);
        }
      },
    },
  );
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
