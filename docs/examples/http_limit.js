// An HTTP server that asks Weir first: http_limit.js [WEIR [PORT [PROTO_DIR]]]
'use strict';
const http = require('node:http');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [server = '127.0.0.1:8081', port = '8000', protos = 'proto'] = process.argv.slice(2);
const options = { includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true };
const { weir } = grpc.loadPackageDefinition(loader.loadSync('weir/v1/rate_limit.proto', options));
const client = new weir.v1.RateLimitService(server, grpc.credentials.createInsecure());

const STATUS = { REASON_LIMITED: 429, REASON_BANNED: 429, REASON_NEVER: 403, REASON_DENY_LIST: 403, REASON_STORE_FAILURE: 503 };

http.createServer((request, response) => {
  const reply = (status, headers, text) => response.writeHead(status, headers).end(`${text}\n`);
  // Without the query: a caller that varies it must not find a new limit each time.
  const path = request.url.split('?')[0];
  const question = { resource: path, consumer: request.headers['x-user'] || 'nobody', headers: true };
  client.ShouldAllow(question, { deadline: Date.now() + 1000 }, (error, answer) => {
    if (error) {
      const temporary = [grpc.status.UNAVAILABLE, grpc.status.DEADLINE_EXCEEDED].includes(error.code);
      return reply(temporary ? 503 : 500, {}, 'The rate limit cannot be checked');
    }
    // A request with an `id` that is known is allowed with `applied: false`, and charges nothing. This server sends
    // none. Whoever sends one makes it here (randomUUID): a caller that chooses its id passes as often as it likes.
    if (!answer.allowed) return reply(STATUS[answer.reason], answer.headers, answer.message);
    reply(200, answer.headers, 'hello');
  });
}).listen(Number(port), '127.0.0.1');
