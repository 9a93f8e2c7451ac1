/** An agent that is replaced by another one at any step: tasks keep running, ends are delivered, nothing starts twice. */
import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import { DriverError } from '../taskFacts/errors.ts';
import { aKey, anAssignment, aTask, forget, prepare, start, stop, TestNode } from './managerFixture.ts';

const released = { ...start, assignment: anAssignment() };

test('before anything: a node that has just been set up', async () => {
  const agent = await new TestNode().agent();
  expect(agent.knows()).toEqual([]);
  expect(agent.warnings).toEqual([]);
});

test('prepared: holds a port again and reports it', async () => {
  const node = new TestNode();
  const first = await node.agent();
  first.order(prepare());
  await first.sends('prepared 10.0.0.7:4000');

  const next = await node.restart(first);
  expect(next.knows()).toEqual(['assigned']);
  next.order(prepare());
  await next.sends('prepared 10.0.0.7:4001');
  next.order(start);
  await next.sends('running');
  expect(node.process.launches).toHaveLength(1);
});

test('released, before the start: starts it', async () => {
  const node = new TestNode();
  const first = await node.agent();
  first.order(prepare());
  await first.sends('prepared 10.0.0.7:4000');
  node.process.fail('start', 'before');
  first.order(start);
  await vi.waitFor(() => expect(first.warnings).toHaveLength(1));
  node.process.mend('start');

  const next = await node.restart(first);
  next.order(released);
  await next.sends('running');
  expect(node.process.launches).toHaveLength(1);
});

test('started, before that was written down: finds it running', async () => {
  const node = new TestNode();
  const first = await node.agent();
  first.order(prepare());
  await first.sends('prepared 10.0.0.7:4000');
  node.process.fail('start', 'after');
  node.process.fail('recover', 'before');
  first.order(start);
  await vi.waitFor(() => expect(node.process.launches).toHaveLength(1));
  node.process.mend('start');
  node.process.mend('recover');

  const next = await node.restart(first);
  expect(next.knows()).toEqual(['running']);
  next.order(released);
  await next.sends('running');
  node.process.end(aKey, exited(2));
  await next.sends('ended 2');
  expect(node.process.launches).toHaveLength(1);
});

test('given up by its driver because the agent is closing: no end of the task', async () => {
  const node = new TestNode();
  const first = await node.agent();
  first.order(prepare());
  await first.sends('prepared 10.0.0.7:4000');
  const letStart = node.process.hold('start');
  first.order(start);
  await vi.waitFor(() => expect(node.process.calls).toContain(`start ${aKey}`));
  node.process.fail('start', 'before', new DriverError('unknown', 'the driver was closed'));
  await first.manager.close();
  letStart();
  await vi.waitFor(() => expect(node.process.calls.at(-1)).toBe(`start ${aKey}`));
  node.process.mend('start');

  const next = await node.agent();
  expect(next.knows()).toEqual(['assigned']);
  next.order(released);
  await next.sends('running');
});

test('running: reports it with its age, and its end', async () => {
  const node = new TestNode();
  const first = await node.agent({ boottimeMs: () => 1_000 });
  await first.bringToRunning();
  const next = await node.restart(first, { boottimeMs: () => 61_000 });
  expect(next.manager.reports()).toMatchObject([
    { state: 'running', startedAtMs: 1_000_000, runningForMs: 60_000 },
  ]);
  expect(next.outputs.get(aKey)).toBeNull();
  next.order(released);
  node.process.end(aKey, exited(0));
  await next.sends('ended 0');
  expect(node.process.launches).toHaveLength(1);
});

test('running, and its driver is away: its output is uploaded meanwhile', async () => {
  const node = new TestNode();
  const first = await node.agent();
  await first.bringToRunning();
  node.process.fail('recover', 'before');
  const next = await node.restart(first);
  expect(next.outputs.get(aKey)).toBeNull();
  node.process.mend('recover');
  next.order(released);
  node.process.end(aKey, exited(0));
  await next.sends('ended 0');
});

test('ended while no agent was there: delivers the end and the whole output', async () => {
  const node = new TestNode();
  const first = await node.agent();
  await first.bringToRunning();
  await first.manager.close();
  node.write('last words\n');
  node.process.end(aKey, exited(9));

  const next = await node.agent();
  expect(next.knows()).toEqual(['ended 9']);
  expect(next.outputs.get(aKey)).toBe(11);
});

test('ended and reported: remembers the end without the driver, and sends the output again', async () => {
  const node = new TestNode();
  const first = await node.agent();
  await first.bringToRunning({ env: { FAKE_OUTPUT: 'hello\n' } });
  node.process.end(aKey, exited(3));
  await first.sends('ended 3');
  node.process.loseAll();

  const next = await node.restart(first);
  expect(next.knows()).toEqual(['ended 3']);
  expect(next.outputs.get(aKey)).toBe(6);
  next.order(forget);
  expect(node.hasRecord()).toBe(true);
  next.manager.setUploaded(aTask);
  await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
});

describe('ended without any output left', () => {
  test('because nothing ran: is removed at the order to forget', async () => {
    const node = new TestNode();
    const first = await node.agent();
    first.order(prepare());
    await first.sends('prepared 10.0.0.7:4000');
    first.order(stop);
    await first.sends('ended nothing ran');

    const next = await node.restart(first);
    expect(next.knows()).toEqual(['ended nothing ran']);
    expect(next.outputs.size).toBe(0);
    next.order(forget);
    await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  });

  test('because it is gone: is forgotten too', async () => {
    const node = new TestNode();
    const first = await node.agent();
    await first.bringToRunning({ env: { FAKE_OUTPUT: 'hello\n' } });
    node.process.end(aKey, exited(3));
    await first.sends('ended 3');
    truncateSync(join(node.root, 'tasks', aKey, 'output.log'), 0);

    const next = await node.restart(first);
    next.order(forget);
    await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  });
});

test('while it is removed: finishes that', async () => {
  const node = new TestNode();
  const first = await node.agent();
  await first.bringToRunning();
  node.process.end(aKey, exited(0));
  await first.sends('ended 0');
  node.process.fail('remove', 'after');
  first.order(forget);
  await vi.waitFor(() => expect(first.warnings).toHaveLength(1));
  node.process.mend('remove');

  const next = await node.restart(first);
  expect(next.knows()).toEqual(['ended 0']);
  next.order(forget);
  await vi.waitFor(() => expect(next.knows()).toEqual([]));
  await vi.waitFor(() => expect(readdirSync(join(node.root, 'tasks'))).toEqual([]));
});

test('after a reboot: what ran has ended, and nobody knows how', async () => {
  const node = new TestNode();
  const first = await node.agent();
  await first.bringToRunning();
  node.process.loseAll();
  const next = await node.restart(first, { bootId: 'boot-2' });
  expect(next.knows()).toEqual(['ended lost']);
});

test('with an engine that is away: the others are found, this one later', async () => {
  const node = new TestNode();
  const first = await node.agent();
  await first.bringToRunning({ image: 'pytorch' });
  const other = { ...aTask, attempt: 2 };
  first.order(prepare({}, other), other);
  await first.sends('prepared 10.0.0.7:4001');
  for (const method of ['recover', 'wait', 'list'] as const) node.docker.fail(method, 'before');

  const next = await node.restart(first);
  expect([...next.knows()].sort()).toEqual(['assigned', 'running']);
  for (const method of ['recover', 'wait', 'list'] as const) node.docker.mend(method);
  next.order(released);
  node.docker.end(aKey, exited(6));
  await next.sends('ended 6');
});

test('at the moment a port is found: lets go of it', async () => {
  const node = new TestNode();
  const found = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const hold = async () => {
    asked.resolve();
    await found.promise;
    return node.holdPort();
  };
  const agent = await node.agent({ rendezvous: { ...node.rendezvous, hold } });
  agent.order(prepare());
  await asked.promise;
  await agent.manager.close();
  found.resolve();
  await vi.waitFor(() => expect(node.heldPorts.size).toBe(0));
  expect(agent.sent).toEqual([]);
});
