// Calls as different callers: `identity.js CASES PROTO_DIR`. Fails at the first status that is not the expected one.
// CASES is described in identity.py.
'use strict';
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const asked = JSON.parse(process.argv[2]);
const options = { includeDirs: [process.argv[3]], keepCase: true, enums: String, defaults: true, oneofs: true };
const { RateLimitService } = grpc.loadPackageDefinition(loader.loadSync('weir/v1/rate_limit.proto', options)).weir.v1;

function call({ cert, key, authorization, consumer }) {
  const own = cert ? [readFileSync(key), readFileSync(cert)] : [null, null];
  const credentials = grpc.credentials.createSsl(readFileSync(asked.ca), ...own);
  const weir = new RateLimitService(asked.server, credentials, { 'grpc.ssl_target_name_override': asked.name });
  const metadata = new grpc.Metadata();
  if (authorization) metadata.set('authorization', authorization);
  const deadline = Date.now() + 60_000;
  return new Promise((resolve) => {
    weir.ShouldAllow({ resource: 'burst/x', consumer }, metadata, { deadline }, (error) => {
      weir.close();
      resolve(grpc.status[error ? error.code : 0]);
    });
  });
}

async function main() {
  for (const one of asked.cases) assert.equal(await call(one), one.code, JSON.stringify(one));
  console.log('all ok');
}

main();
