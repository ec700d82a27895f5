// A node in a process of its own, so that it can be frozen and killed: node.mjs '{ "host", "port", "options" }'
//
// Each answer has the port as `limit`, the number of questions so far as `remaining`, and the consumer as `message`.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";

import { ShouldAllowRequestSchema, ShouldAllowResponseSchema } from "../../dist/gen/weir/v1/rate_limit_pb.js";

const { host = "127.0.0.1", port = 0, options = {} } = JSON.parse(process.argv[2] ?? "{}");
const server = new grpc.Server(options);
let bound = 0;
let asked = 0;

function answer(consumer) {
  asked += 1;
  const message = create(ShouldAllowResponseSchema, { allowed: true, reason: 1, limit: BigInt(bound), remaining: BigInt(asked), message: consumer });
  if (consumer === "degraded") Object.assign(message, { degraded: true, reason: 6 });
  if (consumer === "newer") message.reason = 99;
  const bytes = toBinary(ShouldAllowResponseSchema, message);
  // Field 1000, a text.
  return Buffer.from(consumer === "newer" ? [...bytes, 0xc2, 0x3e, 0x02, 0x68, 0x69] : bytes);
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
      const bytes = answer(consumer);
      if (consumer === "wrong") done({ code: 3, details: "wrong" });
      else if (consumer === "garbage") done(null, Buffer.from([0xff, 0xff]));
      else if (consumer === "slow") setTimeout(done, 300, null, bytes);
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
