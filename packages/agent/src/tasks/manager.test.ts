import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { taskKey } from '@muster/common/ids';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import {
  aKey,
  aTask,
  forget,
  prepare,
  prepareGang,
  start,
  stop,
  TestAgent,
  TestNode,
} from './managerFixture.ts';
import type { Order } from './state.ts';

/** Without a timer, so that none that was set passes meanwhile. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await nextTurn();
}

describe('one task', () => {
  test('is prepared, announced, started, reported and forgotten', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    expect(node.hasRecord()).toBe(true);
    expect(node.process.launches).toEqual([]);

    agent.order(start);
    await agent.sends('running');
    expect(node.process.launches).toMatchObject([
      { key: aKey, command: ['train'], env: { PATH: '/bin', MASTER_ADDR: '10.0.0.1', MASTER_PORT: '4000' } },
    ]);

    node.write('all of it\n');
    node.process.end(aKey, exited(3));
    await agent.sends('ended 3');
    expect(agent.outputs.get(aKey)).toBe(10);

    agent.order(forget);
    expect(node.hasRecord()).toBe(true);
    agent.manager.setUploaded(aTask);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
    expect(node.hasRecord()).toBe(false);
    expect(agent.outputs.size).toBe(0);
    expect(node.heldPorts.size).toBe(0);
    expect(agent.sent).toEqual(['prepared 10.0.0.7:4000', 'running', 'ended 3']);
    expect(agent.warnings).toEqual([]);
  });

  test('of another rank than 0 holds a port for its peers only', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    const task = { ...aTask, nodeRank: 1 };
    agent.order(prepareGang(task), task);
    await agent.sends('prepared test port 4000');
    expect(node.heldPorts.size).toBe(1);
  });

  test('with an image runs in the container engine', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await agent.bringToRunning({ image: 'pytorch' });
    expect(node.docker.launches).toMatchObject([{ key: aKey, image: 'pytorch' }]);
    expect(node.process.launches).toEqual([]);
  });

  test('that ends within moments is reported once, with how long ago it began', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    agent.order(start);
    await until(() => agent.knows().includes('running'));
    node.boottimeMs += 40;
    node.process.end(aKey, exited(0));
    await until(() => agent.sent.length > 1);
    expect(agent.sent).toEqual(['prepared 10.0.0.7:4000', 'ended 0']);
    expect(agent.reports).toMatchObject([{ startedAtMs: 1_000_000, runningForMs: 40 }]);
  });

  test('that writes nothing has nothing to upload, and is removed without an answer about it', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await agent.bringToRunning();
    node.process.end(aKey, exited(0));
    await agent.sends('ended 0');
    expect(agent.outputs.size).toBe(0);
    agent.order(forget);
    await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  });

  test('that cannot be started is reported with the cause, and not tried again', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare({ env: { FAKE_START_ERROR: 'command_not_found' } }));
    await agent.sends('prepared 10.0.0.7:4000');
    agent.order(start);
    await agent.sends('ended command_not_found');
    expect(agent.reports.at(-1)?.exit?.startError).toEqual({
      kind: 'command_not_found',
      message: 'it could not be started',
      node: 'a',
      nodeRank: 0,
      blame: 'job',
      evidence: null,
    });
    expect(node.process.calls.filter((call) => call.startsWith('start'))).toHaveLength(1);
  });
});

/** What has happened before the order comes. */
const situations = {
  nothing: async () => {},
  prepared: async (agent: TestAgent) => {
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
  },
  running: async (agent: TestAgent) => {
    await agent.bringToRunning({ env: { FAKE_OUTPUT: 'hello\n' } });
  },
  ended: async (agent: TestAgent, node: TestNode) => {
    await situations.running(agent);
    node.process.end(aKey, exited(3));
    await agent.sends('ended 3');
  },
} as const;

const released: Order = { ...start, assignment: prepare().assignment };
const orders = { prepare: prepare(), start: released, stop, forget } as const;

/** Before, the order, and what is sent at the end of it (nothing: the last word stands). */
const paths: readonly [keyof typeof situations, keyof typeof orders, string | null, readonly string[]][] = [
  ['nothing', 'prepare', 'prepared 10.0.0.7:4000', ['prepared']],
  ['nothing', 'start', 'ended lost', ['ended lost']],
  ['nothing', 'stop', 'ended lost', ['ended lost']],
  ['nothing', 'forget', null, []],
  ['prepared', 'prepare', 'prepared 10.0.0.7:4000', ['prepared']],
  ['prepared', 'start', 'running', ['running']],
  ['prepared', 'stop', 'ended nothing ran', ['ended nothing ran']],
  ['prepared', 'forget', null, []],
  ['running', 'prepare', 'running', ['running']],
  ['running', 'start', 'running', ['running']],
  ['running', 'stop', 'ended SIGTERM', ['ended SIGTERM']],
  ['running', 'forget', null, ['ended SIGKILL']],
  ['ended', 'prepare', 'ended 3', ['ended 3']],
  ['ended', 'start', 'ended 3', ['ended 3']],
  ['ended', 'stop', 'ended 3', ['ended 3']],
  ['ended', 'forget', null, ['ended 3']],
];

test.each(paths)('%s, then %s', async (before, order, messages, known) => {
  const node = new TestNode();
  const agent = await node.agent();
  await situations[before](agent, node);
  // A new connection: what was sent may not have arrived.
  agent.manager.connected();
  agent.sent.length = 0;

  agent.order(orders[order]);
  if (messages !== null) await agent.sends(messages);
  await vi.waitFor(() => expect(agent.knows()).toEqual(known));
  expect(agent.sent).toEqual(messages === null ? [] : [messages]);
  expect(node.process.launches.length).toBeLessThanOrEqual(1);

  agent.order(forget);
  await vi.waitFor(() => expect(agent.knows()).not.toContain('running'));
  agent.manager.setUploaded(aTask);
  await vi.waitFor(() => expect(agent.knows()).toEqual([]));
  await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  expect(node.process.isRunning(aKey)).toBe(false);
  expect(node.heldPorts.size).toBe(0);
});

describe('an order that comes while another is followed', () => {
  test.each([
    ['stop', stop],
    ['forget', forget],
  ])('an order to %s during the start gives it up: the task never ran', async (_, order) => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.prepared(agent);
    const letStart = node.process.hold('start');
    agent.order(start);
    await vi.waitFor(() => expect(node.process.calls).toContain(`start ${aKey}`));
    agent.order(order);
    if (order === stop) await agent.sends('ended nothing ran');
    agent.order(forget);
    await vi.waitFor(() => expect([node.hasRecord(), agent.knows()]).toEqual([false, []]));
    letStart();
    expect(node.process.launches).toEqual([]);
    expect(agent.warnings).toEqual([]);
    expect(agent.knows()).toEqual([]);
  });

  test('a stop that comes too late for a start ends the task once it runs', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.prepared(agent);
    const letAnswer = node.process.hold('start', 'after');
    agent.order(start);
    await vi.waitFor(() => expect(node.process.launches).toHaveLength(1));
    agent.order(stop);
    letAnswer();
    await agent.sends('ended SIGTERM');
    expect(node.process.launches).toHaveLength(1);
  });

  test('an order to forget during the stop ends its grace', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.running(agent);
    const letStop = node.process.hold('stop');
    agent.order(stop);
    await vi.waitFor(() => expect(node.process.calls.at(-1)).toBe(`stop ${aKey} SIGTERM 5000`));
    agent.order(forget);
    agent.order(forget);
    await vi.waitFor(() => expect(node.process.calls.at(-1)).toBe(`stop ${aKey} SIGKILL 0`));
    expect(node.process.calls.filter((call) => call.startsWith('stop'))).toHaveLength(2);
    letStop();
    await vi.waitFor(() => expect(agent.knows()).toEqual([expect.stringMatching('ended SIG')]));
    expect(agent.sent.filter((messages) => messages.startsWith('ended'))).toHaveLength(0);
  });

  test('an order to forget during the stop waits for it, and keeps the output until it is uploaded', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.running(agent);
    const letStop = node.process.hold('stop');
    agent.order(stop);
    agent.order(forget);
    letStop();
    await vi.waitFor(() => expect(agent.knows()).toEqual(['ended SIGTERM']));
    expect(node.hasRecord()).toBe(true);
    agent.manager.setUploaded(aTask);
    await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  });

  test('a late order about a task that is being removed does not bring it back', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.prepared(agent);
    const letRemove = node.process.hold('remove');
    agent.order(forget);
    agent.order(released);
    letRemove();
    await vi.waitFor(() => expect([node.hasRecord(), agent.knows()]).toEqual([false, []]));
    agent.order(released);
    expect(agent.knows()).toEqual([]);
    expect(node.process.launches).toEqual([]);
  });

  test('the end of a task during its stop is reported once', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.running(agent);
    const letStop = node.process.hold('stop');
    agent.order(stop);
    node.process.end(aKey, exited(0));
    letStop();
    await agent.sends('ended 0');
    expect(agent.sent.filter((messages) => messages.startsWith('ended'))).toHaveLength(1);
  });
});

describe('a new connection', () => {
  test('gets again what was sent on the last one, when the coordinator asks for it', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.prepared(agent);
    agent.order(start);
    await agent.sends('running');
    agent.sent.length = 0;
    agent.manager.connected();
    agent.manager.setDesired(new Map([[aKey, { task: aTask, order: released, lease: null }]]));
    await agent.sends('running');
  });

  test('leaves alone what the coordinator does not name', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await situations.running(agent);
    agent.manager.connected();
    agent.manager.setDesired(new Map());
    node.process.end(aKey, exited(0));
    await vi.waitFor(() => expect(agent.knows()).toEqual(['ended 0']));
    expect(node.hasRecord()).toBe(true);
  });
});

test('a thousand tasks are reported with one look at the clock', async () => {
  const node = new TestNode();
  let looks = 0;
  const agent = await node.agent({ boottimeMs: () => looks++ });
  for (let attempt = 1; attempt <= 1_000; attempt++) {
    const task = { ...aTask, attempt, nodeRank: 1 };
    agent.order(prepare({}, task), task);
  }
  await vi.waitFor(() => expect(agent.knows()).toHaveLength(1_000));
  looks = 0;
  expect(new Set(agent.manager.reports().map(({ task }) => taskKey(task))).size).toBe(1_000);
  expect(looks).toBe(1);
});

test('a task that was forgotten, and is wanted by an older store, is not run again but reported as ended', async () => {
  for (const order of [start, released, prepare()]) {
    const node = new TestNode();
    const agent = await node.agent();
    await agent.bringToRunning();
    node.process.end(aKey, exited(0));
    await agent.sends('ended 0');
    agent.order(forget);
    agent.manager.setUploaded(aTask);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
    agent.manager.connected();
    agent.manager.setDesired(new Map([[aKey, { task: aTask, order, lease: null }]]));
    await vi.waitFor(() => expect(agent.knows()).toEqual(['ended lost']));
    expect(agent.sent.at(-1)).toMatch(/ended/);
    expect(node.process.launches).toHaveLength(1);
    agent.order(forget);
    agent.manager.setUploaded(aTask);
    await vi.waitFor(() => expect([node.hasRecord(), agent.knows()]).toEqual([false, []]));
  }
});

test('an attempt that is removed leaves the checkpoint directory that a later one saves in', async () => {
  const node = new TestNode();
  const agent = await node.agent();
  const directory = join(node.root, 'checkpoints', aTask.jobId);
  await agent.bringToRunning();
  const later = { ...aTask, attempt: 2 };
  agent.order(prepare({}, later), later);
  await vi.waitFor(() => expect(agent.knows()).toEqual(['running', 'prepared']));
  agent.order(forget);
  await vi.waitFor(() => expect(agent.knows()).toEqual(['prepared']));
  await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  expect(existsSync(directory)).toBe(true);
  agent.order(forget, later);
  await vi.waitFor(() => expect(existsSync(directory)).toBe(false));
});
