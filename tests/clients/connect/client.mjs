// Calls Weir with @connectrpc/connect-web, as JSON and as Protobuf: client.mjs URL DESCRIPTORS
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';

const [baseUrl, descriptors] = process.argv.slice(2);
const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const reasons = files.getEnum('weir.v1.Reason').value;

async function errorOf(call) {
  const error = await call.then(() => assert.fail('no error'), ConnectError.from);
  return error;
}

for (const useBinaryFormat of [false, true]) {
  const transport = createConnectTransport({ baseUrl, useBinaryFormat });
  const client = createClient(files.getService('weir.v1.RateLimitService'), transport);
  const question = { resource: 'x', consumer: `node-${useBinaryFormat}`, strategy: 'two', cost: 1n, headers: true };
  const answers = [];
  for (let index = 0; index < 3; index += 1) answers.push(await client.shouldAllow(question, { timeoutMs: 5_000 }));
  assert.deepEqual(answers.map((answer) => answer.allowed), [true, true, false]);
  const denied = answers[2];
  assert.equal(reasons[denied.reason].name, 'REASON_LIMITED');
  assert.equal(denied.retryAfter.seconds, 1799n);
  assert.equal(denied.headers['Retry-After'], '1800');
  const batch = await client.shouldAllowBatch({ requests: [question, question] });
  assert.deepEqual(batch.results.map((it) => it.result.value.allowed), [false, false]);
  const unknown = await errorOf(client.shouldAllow({ resource: 'x', consumer: 'y', strategy: 'tow' }));
  assert.equal(unknown.code, Code.NotFound);
  assert.match(unknown.rawMessage, /tow/);
  assert.equal(unknown.details.length, 1);
  assert.equal((await errorOf(client.shouldAllow({ resource: 'x', strategy: 'two' }))).code, Code.InvalidArgument);
  assert.equal((await errorOf(client.shouldAllow({ resource: 'x'.repeat(70_000) }))).code, Code.ResourceExhausted);
  const queues = createClient(files.getService('weir.v1.QueueService'), transport);
  const take = { queue: 'jobs', consumer: 'worker', maxWait: { seconds: 20n } };
  // Take waits no longer than the caller's deadline, which travels as a header; a busy caller may be late for the answer.
  const started = performance.now();
  const taken = await queues.take(take, { timeoutMs: 1_000 }).catch(ConnectError.from);
  assert.ok(taken instanceof ConnectError ? taken.code === Code.DeadlineExceeded : taken.items.length === 0);
  assert.ok(performance.now() - started < 10_000);
  // A call that its caller gives up is canceled there, and here.
  const gone = new AbortController();
  setTimeout(() => gone.abort(), 100);
  assert.equal((await errorOf(queues.take(take, { signal: gone.signal }))).code, Code.Canceled);
}
console.log('all ok');
