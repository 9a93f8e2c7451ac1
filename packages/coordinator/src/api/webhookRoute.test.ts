/** Triggers by webhook, over HTTP. */
import { createHmac } from 'node:crypto';
import { Agent, type ClientRequest, request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import type { DeliveryAnswer } from '../rpc/webhookDeliveries.ts';
import { ask, problemIn } from './apiFixture.ts';

let coordinator: TestCoordinator;
let secret: string;
let deliveries = 0;
const name = 'pushed';

const file = { name: 'vision', params: { branch: 'main', lr: 0.1 }, steps: { train: { run: 'train' } } };
const wish = {
  name,
  specJson: JSON.stringify(file),
  paramsJson: JSON.stringify({ branch: 'of ${trigger.body.ref}', lr: '${trigger.body.lr}' }),
  webhook: true,
  overlap: 'allow',
} as const;

beforeAll(async () => {
  coordinator = await startTestCoordinator({ api: {} });
  const made = await coordinator.api.createTrigger(wish);
  expect(made).toMatchObject({ kind: 'webhook', cron: null, nextAtMs: null });
  secret = made.secret ?? '';
});
afterAll(() => coordinator.close());
beforeEach(() => {
  deliveries += 1;
});

const body = JSON.stringify({ ref: 'main', lr: 0.5 });
const nowSeconds = () => Math.floor(coordinator.clock.wallMs() / 1_000);

interface Sent {
  readonly id?: string;
  readonly timestamp?: number | string;
  readonly body?: string;
  readonly signedWith?: string;
  readonly signature?: string;
  readonly to?: string;
}

/** As a sender that follows the specification, by means of its own. */
function signed(sent: Sent) {
  const { id = `msg_${deliveries}`, timestamp = nowSeconds(), signedWith = secret } = sent;
  const text = sent.body ?? body;
  const key = Buffer.from(signedWith.slice('whsec_'.length), 'base64');
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${text}`).digest('base64');
  const { signature = `v1,${mac}` } = sent;
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  };
  return { headers, text };
}

function send(sent: Sent = {}) {
  const { headers, text } = signed(sent);
  return ask(coordinator, `POST /triggers/${sent.to ?? name}/deliveries`, {
    token: null,
    headers,
    body: text,
  });
}

const runsOf = async () => (await coordinator.api.listPipelines()).runs.length;

test('a trigger that is created again as it is keeps its secret', async () => {
  const other = { ...wish, name: 'twice' };
  const made = await Promise.all([
    coordinator.api.createTrigger(other),
    coordinator.api.createTrigger(other),
  ]);
  const secrets = made.flatMap((each) => each.secret ?? []);
  expect(secrets).toHaveLength(1);
  expect((await coordinator.api.createTrigger(other)).secret).toBeNull();
  expect(await send({ to: 'twice', signedWith: secrets[0] ?? '' })).toMatchObject({ status: 200 });
  await coordinator.api.deleteTrigger('twice');
});

test('a delivery starts a run with values of its body, and sent again it is the same run', async () => {
  const first = await send();
  const { run } = first.json as DeliveryAnswer;
  expect(first).toMatchObject({ status: 200, json: { trigger: name, repeated: false } });
  expect(await coordinator.api.getPipeline(run ?? '')).toMatchObject({
    trigger: name,
    params: { branch: 'of main', lr: 0.5 },
  });
  const count = await runsOf();
  expect((await send()).json).toEqual({ trigger: name, run, repeated: true });
  // Also at the same time.
  const answers = await Promise.all([1, 2, 3].map(() => send({ id: 'msg_same' })));
  expect(new Set(answers.map(({ json }) => (json as DeliveryAnswer).run)).size).toBe(1);
  expect(await runsOf()).toBe(count + 1);
  const record = [...coordinator.memory.requests.values()].find(({ arrayId }) => arrayId === run);
  expect(record?.requestId).toMatch(/^webhook\/pushed\//);
  const other = await send({ body: JSON.stringify({ ref: 'other', lr: 1 }) });
  expect(problemIn(other)).toMatchObject({
    status: 409,
    detail:
      `webhook-id: a delivery with the id msg_${deliveries} and another body was carried out before; ` +
      'give each delivery an id of its own; one that is repeated keeps its body',
  });
  expect(await runsOf()).toBe(count + 1);
});

test('a delivery that had to wait is answered with its run once that has started', async () => {
  const specJson = JSON.stringify({ name: 'slow', steps: { train: { run: 'train' } } });
  const made = await coordinator.api.createTrigger({
    name: 'slow',
    specJson,
    webhook: true,
    overlap: 'queue',
  });
  const sendTo = (id: string) => send({ id, to: 'slow', signedWith: made.secret ?? '' });
  const first = (await sendTo('msg_first')).json as DeliveryAnswer;
  expect((await sendTo('msg_next')).json).toEqual({ trigger: 'slow', run: null, repeated: false });
  expect((await sendTo('msg_next')).json).toEqual({ trigger: 'slow', run: null, repeated: true });
  await coordinator.api.stopPipeline(first.run ?? '', '');
  await coordinator.pipelines.run();
  await coordinator.triggers.run();
  const [run] = (await coordinator.api.getTrigger('slow')).running;
  expect((await sendTo('msg_next')).json).toEqual({ trigger: 'slow', run, repeated: true });
  expect(await coordinator.api.getPipeline(run ?? '')).not.toHaveProperty('requestId');
  await coordinator.api.deleteTrigger('slow');
});

describe('nothing is started, and no reason told, without the secret:', () => {
  test('by whatever is wrong', async () => {
    const before = await runsOf();
    const wrong: readonly Sent[] = [
      { signedWith: `whsec_${Buffer.alloc(32).toString('base64')}` },
      { signature: '' },
      { signature: 'v1,' },
      { signature: 'v2,AAAA' },
      { signature: Array.from({ length: 500 }, () => 'v1,AAAA').join(' ') },
      { to: 'unknown' },
    ];
    const answers = await Promise.all(wrong.map(send));
    const [first] = answers;
    for (const answer of answers) {
      expect(answer.status).toBe(401);
      expect(problemIn(answer).detail).toBe(problemIn(first ?? answer).detail);
    }
    const bare = await ask(coordinator, `POST /triggers/${name}/deliveries`, { token: null, body });
    expect(problemIn(bare)).toEqual(problemIn(first ?? bare));
    expect(await runsOf()).toBe(before);
  });
});

test('the connection of a signed delivery stays open for the next one', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const deliverBy = (id: string) =>
    new Promise<ClientRequest>((resolve, reject) => {
      const { headers, text } = signed({ id });
      const url = `${coordinator.apiUrl}/api/v1/triggers/${name}/deliveries`;
      const type = { 'content-type': 'application/json' };
      const asked = request(url, { method: 'POST', agent, headers: { ...headers, ...type } }, (answer) => {
        answer.resume().once('end', () => resolve(asked));
      });
      asked.once('error', reject).end(text);
    });
  const first = await deliverBy('msg_open');
  coordinator.clock.nowMs += 60_000;
  coordinator.connections.sweep();
  const next = await deliverBy('msg_reused');
  expect([first.reusedSocket, next.reusedSocket]).toEqual([false, true]);
});

test('one that is too old, or from the future, is refused, so that it cannot be sent again later', async () => {
  const before = await runsOf();
  for (const timestamp of [nowSeconds() - 301, nowSeconds() + 301, '-1', '1e9', ''])
    expect(await send({ timestamp })).toMatchObject({ status: 401 });
  expect(problemIn(await send({ timestamp: nowSeconds() - 301 })).detail).toMatch(/within 5 minutes of/);
  expect(await runsOf()).toBe(before);
  expect((await send({ timestamp: nowSeconds() - 299 })).status).toBe(200);
});

test('a body that is none, too large or without a value says so', async () => {
  expect(problemIn(await send({ body: '{' }))).toMatchObject({ status: 400, detail: 'the body is not JSON' });
  expect((await send({ body: JSON.stringify('x'.repeat(400_000)) })).status).toBe(413);
  const { json } = await send({ body: '{"ref": "main"}' });
  expect(json).toEqual({ trigger: name, run: null, repeated: false });
  const [fire] = (await coordinator.api.getTrigger(name)).fires;
  expect(fire).toMatchObject({
    cause: `delivery msg_${deliveries}`,
    outcome: 'failed',
    reason: 'param "lr": trigger.body.lr is not a value',
  });
});

test('a paused trigger starts nothing, and a deleted one is unknown, with its secret', async () => {
  await coordinator.api.pauseTrigger(name);
  expect(problemIn(await send())).toMatchObject({ status: 409, detail: /is paused/ });
  await coordinator.api.resumeTrigger(name);
  expect((await send()).status).toBe(200);
  const names = async () => (await coordinator.api.listSecrets('default')).map((each) => each.name);
  expect(await names()).toEqual([`trigger.${name}`]);
  await coordinator.api.deleteTrigger(name);
  expect(await names()).toEqual([]);
  expect((await send({ id: 'msg_late' })).status).toBe(401);
});
