// Asks over and over with the channel options of docs/clients.md, and fails open: `reconnect.js HOST:PORT PROTO_DIR`. A line
// says of each call whether it was answered, so that a test sees for how long a restart leaves the client unlimited.
'use strict';
const { promisify } = require('node:util');
const { setTimeout: pause } = require('node:timers/promises');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [server, protos] = process.argv.slice(2);
const OPTIONS = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
};

async function main() {
  const files = loader.loadSync('weir/v1/rate_limit.proto', { includeDirs: [protos], keepCase: true });
  const { RateLimitService } = grpc.loadPackageDefinition(files).weir.v1;
  const weir = new RateLimitService(server, grpc.credentials.createInsecure(), OPTIONS);
  const ask = promisify(weir.ShouldAllow.bind(weir));
  for (;;) {
    try {
      await ask({ resource: 'api/search', consumer: 'bob' }, { deadline: Date.now() + 500 });
      console.log('answered');
    } catch {
      console.log('failed open');
    }
    await pause(100);
  }
}

main();
