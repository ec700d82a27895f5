// A node in a process of its own, so that it can be frozen and killed: node.mjs '{ "host", "port", "options" }'
//
// Each answer has the port as `limit`, and the number of questions so far as `remaining`.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";

import { ShouldAllowRequestSchema, ShouldAllowResponseSchema } from "../../dist/gen/weir/v1/rate_limit_pb.js";

const { host = "127.0.0.1", port = 0, options = {} } = JSON.parse(process.argv[2] ?? "{}");
const server = new grpc.Server(options);
let bound = 0;
let asked = 0;

function answer() {
  asked += 1;
  const message = create(ShouldAllowResponseSchema, { allowed: true, reason: 1, limit: BigInt(bound), remaining: BigInt(asked) });
  return Buffer.from(toBinary(ShouldAllowResponseSchema, message));
}

server.addService(
  {
    shouldAllow: {
      path: "/weir.v1.RateLimitService/ShouldAllow",
      requestStream: false,
      responseStream: false,
      requestDeserialize: (bytes) => fromBinary(ShouldAllowRequestSchema, bytes),
      responseSerialize: (bytes) => bytes,
    },
  },
  {
    shouldAllow: ({ request: { consumer } }, done) => {
      const bytes = answer();
      if (consumer === "wrong") done({ code: 3, details: "wrong" });
      else done(null, bytes);
    },
  },
);
server.bindAsync(`${host}:${port}`, grpc.ServerCredentials.createInsecure(), (error, found) => {
  if (error) throw error;
  bound = found;
  console.log(found);
});
process.on("SIGTERM", () => server.tryShutdown(() => process.exit(0)));
process.stdin.on("end", () => process.exit(0)).resume();
