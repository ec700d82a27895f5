// What a Node program gets from Weir: `client.js HOST:PORT PROTO_DIR`. Fails at the first answer that is wrong.
'use strict';
const assert = require('node:assert/strict');
const { promisify } = require('node:util');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [server, protos] = process.argv.slice(2);
const HOUR = 3600;
const TIGERS = 'zewtopia.com/tigerfeeding';

const load = (file, longs = Number) => {
  const options = { includeDirs: [protos], keepCase: true, longs, enums: String, defaults: true, oneofs: true };
  return grpc.loadPackageDefinition(loader.loadSync(file, options));
};

// grpc-js bundles no health proto; the standard is this short.
const HEALTH = {
  nested: { grpc: { nested: { health: { nested: { v1: { nested: {
    Health: { methods: { Check: { requestType: 'Request', responseType: 'Response' } } },
    Request: { fields: { service: { type: 'string', id: 1 } } },
    Response: { fields: { status: { type: 'int32', id: 1 } } },
  } } } } } } },
};
const SERVING = 1;

async function main() {
  const { RateLimitService } = load('weir/v1/rate_limit.proto').weir.v1;
  const weir = new RateLimitService(server, grpc.credentials.createInsecure());
  const call = promisify(weir.ShouldAllow.bind(weir));
  const ask = (resource, consumer, fields = {}) => call({ resource, consumer, ...fields });
  const equal = (what, got, wanted) => {
    assert.deepEqual(got, wanted, what);
    console.log('ok:', what);
  };
  const refused = async (what, code, words, promise) => {
    const error = await promise.then(() => assert.fail(`${what}: answered`), (error) => error);
    equal(what, error.code, code);
    assert.ok(error.details.includes(words), error.details);
  };

  const first = await ask(TIGERS, 'bob');
  equal('the first call is allowed', [first.allowed, first.reason], [true, 'REASON_OK']);
  equal('what remains', [first.remaining, first.limit], [0, 1]);
  equal('an allowed call has nothing to wait for', first.retry_after, null);
  equal('each limit tells', first.limits.map((limit) => limit.name), ['everyone', 'each']);

  const second = await ask(TIGERS, 'bob');
  equal('the second is denied', [second.allowed, second.reason], [false, 'REASON_LIMITED']);
  equal('by the limit that says so', second.denied_by, ['each']);
  const wait = second.retry_after.seconds + second.retry_after.nanos / 1e9;
  assert.ok(HOUR - 60 < wait && wait <= HOUR, `${wait}`);
  const [minutes, seconds] = [Math.floor(Math.ceil(wait) / 60), Math.ceil(wait) % 60];
  const told = minutes === 60 ? '1h' : seconds > 0 ? `${minutes}m ${seconds}s` : `${minutes}m`;
  equal('with a sentence', second.message, `Rate limit exceeded. Try again in ${told}`);
  equal('another consumer is not', (await ask(TIGERS, 'carol')).allowed, true);

  equal('a cost is taken', (await ask('api/search', 'bob', { cost: 7 })).remaining, 3);
  equal('a peek takes nothing', (await ask('api/search', 'bob', { cost: 3, peek: true })).remaining, 3);
  equal('nor does cost 0', (await ask('api/search', 'bob', { cost: 0 })).remaining, 3);
  equal('what does not fit is denied', (await ask('api/search', 'bob', { cost: 4 })).reason, 'REASON_LIMITED');
  const never = await ask('api/search', 'bob', { cost: 11 });
  equal('a cost above the limit has reason NEVER', [never.reason, never.retry_after], ['REASON_NEVER', null]);
  equal('a named strategy', (await ask('anything', 'dave', { strategy: 'api' })).remaining, 9);

  const [north, south] = ['north', 'south'].map((region) => ({ attributes: { region } }));
  equal('an attribute is counted by', (await ask('maps', 'bob', { cost: 2, ...north })).allowed, true);
  equal('used up there', (await ask('maps', 'eve', north)).allowed, false);
  equal('and not elsewhere', (await ask('maps', 'eve', south)).allowed, true);
  await refused('a missing one', grpc.status.INVALID_ARGUMENT, 'region', ask('maps', 'bob'));

  equal('who is on the deny list', (await ask(TIGERS, 'bot-7')).reason, 'REASON_DENY_LIST');
  equal('who is on the allow list', (await ask(TIGERS, 'keeper')).reason, 'REASON_ALLOW_LIST');

  const questions = [['api/search', 4], ['api/search', 7], ['nowhere', 1], ['api/search', 0]];
  const requests = questions.map(([resource, cost]) => ({ resource, consumer: 'erin', cost }));
  const { results } = await promisify(weir.ShouldAllowBatch.bind(weir))({ requests });
  equal('a batch is answered in order', results.map((one) => one.result), ['response', 'response', 'error', 'response']);
  const answers = [0, 1, 3].map((index) => results[index].response);
  equal('each for itself', answers.map((answer) => answer.allowed), [true, false, true]);
  equal('after those before it', answers.map((answer) => answer.remaining), [6, 6, 6]);
  equal('one that fails fails alone', results[2].error.code, grpc.status.NOT_FOUND);

  const giveBack = () => promisify(weir.Refund.bind(weir))({ resource: 'api/search', consumer: 'erin', cost: 3, id: 'order-1' });
  const [refund, again] = [await giveBack(), await giveBack()];
  equal('a refund is applied once', [refund.applied, again.applied], [true, false]);
  equal('to its limits', refund.limits.map((limit) => [limit.name, limit.remaining]), [['burst', 9]]);
  equal('and can be taken again', (await ask('api/search', 'erin', { cost: 9 })).remaining, 0);

  const unknown = ask(TIGERS, 'bob', { strategy: 'tiger-fedding' });
  await refused('an unknown strategy', grpc.status.NOT_FOUND, 'tiger-feeding', unknown);
  await refused('no resource', grpc.status.INVALID_ARGUMENT, 'resource', ask('', 'bob'));

  // docs/clients.md says what becomes of uint64.
  for (const [longs, id, remaining] of [[Number, Number.MAX_SAFE_INTEGER, 10], [String, '18446744073709551615', '10']]) {
    const client = new (load('weir/v1/rate_limit.proto', longs).weir.v1.RateLimitService)(server, grpc.credentials.createInsecure());
    const stream = client.ShouldAllowStream();
    const answer = new Promise((resolve, reject) => stream.once('data', resolve).once('error', reject));
    stream.write({ requests: [{ id, request: { resource: 'api/search', consumer: 'ids', peek: true } }] });
    const [result] = (await answer).results;
    equal(`an id comes back as ${longs.name}`, [result.id, result.response.remaining], [id, remaining]);
    stream.end();
    client.close();
  }

  const { Health } = grpc.loadPackageDefinition(loader.fromJSON(HEALTH)).grpc.health.v1;
  const health = new Health(server, grpc.credentials.createInsecure());
  for (const service of ['', 'weir.v1.RateLimitService']) {
    const answer = await promisify(health.Check.bind(health))({ service });
    equal(`health of '${service}'`, answer.status, SERVING);
  }
  weir.close();
  health.close();
  console.log('all ok');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
