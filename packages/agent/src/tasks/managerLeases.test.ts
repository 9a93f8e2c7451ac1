/** Tasks under leases: what agents, one after the other, do to them with and without contact with the coordinator. */
import { describe, expect, test, vi } from 'vitest';
import { statusLost } from '../drivers/docker/taskExit.ts';
import { exited } from '../drivers/fakeDriver.ts';
import {
  aKey,
  anAssignment,
  aTask,
  forget,
  prepare,
  start,
  stop,
  type TestAgent,
  TestNode,
} from './managerFixture.ts';

const released = { ...start, assignment: anAssignment() };
const killed = { ...statusLost, signal: 'SIGKILL', statusLost: false };

/** Runs with a lease of 1 s, given at 500 ms. */
async function leased(spec: Readonly<Record<string, unknown>> = {}) {
  const node = new TestNode();
  node.leaseMs = 1_000;
  const agent = await node.agent();
  await agent.bringToRunning(spec);
  return { node, agent };
}

/** The deadline passes, and what follows from that has followed. */
async function runOut({ node, agent }: { node: TestNode; agent: TestAgent }): Promise<void> {
  node.boottimeMs = 1_500;
  await agent.sends('running frozen');
}

test('a task is started with its lease, frozen when it runs out, and thawed by a fresh one', async () => {
  const { node, agent } = await leased();
  const lease = { deadlineBoottimeMs: 1_500, bootId: 'boot-1', onExpiry: 'freeze' };
  expect(node.process.launches[0]?.lease).toEqual(lease);
  await runOut({ node, agent });
  expect(agent.knows()).toEqual(['running frozen']);
  node.boottimeMs = 7_000;
  agent.grant(1_000);
  await agent.sends('running');
  expect(node.process.isFrozen(aKey)).toBe(false);
  node.process.end(aKey, exited(0));
  await agent.sends('ended 0');
  expect(node.process.launches).toHaveLength(1);
});

test('a lease is for one attempt: another one of the same job gets nothing from it', async () => {
  const { node, agent } = await leased();
  agent.grant(60_000, { ...aTask, attempt: 2 });
  await runOut({ node, agent });
  agent.grant(60_000, { ...aTask, attempt: 2 });
  agent.grant(60_000);
  await agent.sends('running');
});

test('a task that was superseded while it was frozen is killed, and not thawed before', async () => {
  const { node, agent } = await leased();
  await runOut({ node, agent });
  agent.order(forget);
  await vi.waitFor(() => expect(agent.knows()).toEqual([]));
  expect(node.process.calls.slice(-2)).toEqual([`stop ${aKey} SIGKILL 0`, `remove ${aKey}`]);
  expect(node.process.calls).not.toContain(`thaw ${aKey}`);
});

test('a task of `node_loss: hold`, whose lease is 0, is never fenced', async () => {
  const node = new TestNode();
  const agent = await node.agent();
  await agent.bringToRunning();
  const next = await node.restart(agent);
  node.boottimeMs = Number.MAX_SAFE_INTEGER;
  next.order(released);
  await next.sends('running');
  expect(node.process.calls.filter((call) => call.startsWith('freeze'))).toEqual([]);
  expect(node.process.leaseOf(aKey)).toBeNull();
});

describe('a task that is to be killed when its lease runs out', () => {
  const kill = { on_lease_expiry: 'kill' };

  test('ends with a note of that, and no start error', async () => {
    const { node, agent } = await leased(kill);
    node.boottimeMs = 1_500;
    await agent.sends('ended SIGKILL');
    expect(agent.reports.at(-1)?.exit).toMatchObject({
      startError: null,
      failure: {
        source: 'lease',
        consequence: false,
        message: 'killed because its lease ran out: no contact with the coordinator',
      },
    });
  });

  test('and was, by the guard while no agent was there: the next one can tell', async () => {
    const { node, agent } = await leased(kill);
    await agent.manager.close();
    node.boottimeMs = 1_600;
    node.process.end(aKey, killed);
    const next = await node.agent();
    expect(next.manager.reports()[0]?.exit?.failure?.message).toMatch('its lease ran out');
  });

  test('and is killed by somebody else before, ended by that', async () => {
    const { node, agent } = await leased(kill);
    node.process.end(aKey, killed);
    await agent.sends('ended SIGKILL');
    expect(agent.reports.at(-1)?.exit?.failure?.message).toBe('ended by SIGKILL');
  });
});

test('a task that does not freeze is killed, and its end says so', async () => {
  const { node, agent } = await leased();
  node.process.refuseToFreeze(aKey);
  node.boottimeMs = 1_500;
  await agent.sends('ended SIGKILL');
  expect(agent.reports.at(-1)?.exit?.failure?.message).toBe(
    'killed because its lease ran out and it did not freeze',
  );
});

describe('a late release', () => {
  test('starts nothing; a fresh lease does', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    node.boottimeMs = 5_000;
    agent.manager.setOrder({ task: aTask, order: start, lease: null });
    agent.grant(1_000, aTask, 4_000);
    expect(agent.knows()).toEqual(['prepared']);
    expect(node.heldPorts.size).toBe(1);
    agent.grant(1_000, aTask, 4_500);
    await agent.sends('running');
    expect(node.process.launches).toHaveLength(1);
  });

  test('by the clock of the driver, which looks last, leaves the task prepared', async () => {
    const node = new TestNode();
    // This agent sees the time of its last look: it was stopped in between.
    const agent = await node.agent({ boottimeMs: () => 500 });
    node.leaseMs = 1_000;
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    node.boottimeMs = 1_600;
    agent.manager.setOrder({ task: aTask, order: start, lease: null });
    agent.grant(1_000, aTask, 500);
    await vi.waitFor(() => expect(agent.warnings.at(-1)).toMatch('has run out'));
    expect(agent.knows()).toEqual(['prepared']);
    agent.grant(1_000, aTask, 1_500);
    await agent.sends('running');
    expect(node.process.launches).toHaveLength(1);
  });

  test('of an attempt that was forgotten meanwhile starts nothing, whatever the lease', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    agent.order(forget);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
    agent.order(released);
    agent.grant(60_000);
    expect(agent.knows()).toEqual([]);
    expect(node.process.launches).toEqual([]);
  });
});

describe('an agent that is replaced', () => {
  test('while the task runs: its successor keeps the deadline, and does not extend it', async () => {
    const { node, agent } = await leased();
    node.boottimeMs = 1_400;
    const next = await node.restart(agent);
    expect(next.knows()).toEqual(['running']);
    node.boottimeMs = 1_500;
    await vi.waitFor(() => expect(next.knows()).toEqual(['running frozen']));
  });

  test('after the deadline: its successor freezes before it says a word', async () => {
    const { node, agent } = await leased();
    await agent.manager.close();
    node.boottimeMs = 1_600;
    const next = await node.agent();
    await vi.waitFor(() => expect(next.knows()).toEqual(['running frozen']));
    next.order(released);
    await next.sends('running');
    expect(node.process.isFrozen(aKey)).toBe(false);
  });

  test('while the task is frozen: it stays so, until there is a fresh lease', async () => {
    const { node, agent } = await leased();
    await runOut({ node, agent });
    const next = await node.restart(agent);
    expect(next.knows()).toEqual(['running frozen']);
    next.manager.setOrder({ task: aTask, order: released, lease: null });
    next.grant(1_000, aTask, 400);
    expect(node.process.isFrozen(aKey)).toBe(true);
    next.grant(1_000);
    await next.sends('running');
  });

  test('in the middle of the start: the lease was on disk before', async () => {
    const node = new TestNode();
    node.leaseMs = 1_000;
    const agent = await node.agent();
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    node.process.hold('start', 'after');
    agent.order(start);
    await vi.waitFor(() => expect(node.process.launches).toHaveLength(1));
    const next = await node.restart(agent);
    expect(next.knows()).toEqual(['running']);
    node.boottimeMs = 1_500;
    await vi.waitFor(() => expect(next.knows()).toEqual(['running frozen']));
  });

  test('while its engine is away: the task is fenced all the same', async () => {
    const { node, agent } = await leased();
    for (const method of ['recover', 'wait', 'list'] as const) node.process.fail(method, 'before');
    const next = await node.restart(agent);
    node.boottimeMs = 1_500;
    await vi.waitFor(() => expect(node.process.isFrozen(aKey)).toBe(true));
    for (const method of ['recover', 'wait', 'list'] as const) node.process.mend(method);
    next.order(released);
    await next.sends('running');
  });

  test('while it stopped the task: the end is a consequence, also for its successor', async () => {
    const { node, agent } = await leased();
    node.process.hold('stop');
    agent.order(stop);
    await vi.waitFor(() => expect(node.process.calls.at(-1)).toMatch('stop'));
    await agent.manager.close();
    node.process.end(aKey, exited(1));
    const next = await node.agent();
    expect(next.manager.reports()[0]?.exit?.failure).toMatchObject({ consequence: true });
  });
});

describe('a stop', () => {
  test('has its lease for the time of its grace', async () => {
    const { node, agent } = await leased();
    node.boottimeMs = 1_400;
    const letStop = node.process.hold('stop');
    agent.order(stop);
    await vi.waitFor(() => expect(node.process.leaseOf(aKey)?.deadlineBoottimeMs).toBe(2_400));
    letStop();
    await agent.sends('ended SIGTERM');
    expect(agent.reports.at(-1)?.exit?.failure).toMatchObject({ source: 'exit', consequence: true });
  });

  test('that is under way does not keep the fence from holding', async () => {
    const { node, agent } = await leased();
    const letStop = node.process.hold('stop');
    agent.manager.setOrder({ task: aTask, order: stop, lease: null });
    await runOut({ node, agent });
    letStop();
    await agent.sends('ended SIGTERM');
  });
});

test('an end that was bad by itself is no consequence', async () => {
  const { node, agent } = await leased();
  node.process.end(aKey, exited(3));
  await agent.sends('ended 3');
  expect(agent.reports.at(-1)?.exit?.failure).toMatchObject({ consequence: false, message: 'exit code 3' });
});
