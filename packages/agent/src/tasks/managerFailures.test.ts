import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import { DriverError } from '../taskFacts/errors.ts';
import { aKey, anAssignment, forget, prepare, start, stop, TestNode } from './managerFixture.ts';
import { TaskRecords } from './records.ts';

/** Records on a disk that is full until `isFull` is set to false. */
class FullDisk extends TaskRecords {
  isFull = true;

  override create(...record: Parameters<TaskRecords['create']>): Promise<void> {
    return this.isFull
      ? Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }))
      : super.create(...record);
  }

  override update(...update: Parameters<TaskRecords['update']>): void {
    if (this.isFull) throw new Error('ENOSPC: no space left on device');
    super.update(...update);
  }
}

describe('a driver that does not answer', () => {
  test('before it started the task is asked again, and starts it once', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.fail('start', 'before');
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    agent.order(start);
    await vi.waitFor(() => expect(agent.warnings).toHaveLength(1));
    node.process.mend('start');
    await agent.sends('running');
    expect(node.process.launches).toHaveLength(1);
  });

  test('after it started the task is asked what became of it before anything else', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.fail('start', 'after');
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    agent.order(start);
    await agent.sends('running');
    expect(node.process.calls.filter((call) => call.startsWith('start'))).toHaveLength(1);
    node.process.end(aKey, exited(4));
    await agent.sends('ended 4');
  });

  test('about a start is asked before a stop is believed to be done', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.fail('start', 'after');
    node.process.fail('recover', 'before');
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    agent.order(start);
    await vi.waitFor(() => expect(agent.warnings.length).toBeGreaterThan(0));
    agent.order(stop);
    expect(agent.sent).toEqual(['prepared 10.0.0.7:4000']);
    node.process.mend('recover');
    await agent.sends('ended SIGTERM');
    expect(node.process.isRunning(aKey)).toBe(false);
  });

  test.each(['stop', 'remove'] as const)('to a %s is asked until it has done it', async (method) => {
    const node = new TestNode();
    const agent = await node.agent();
    await agent.bringToRunning();
    node.process.fail(method, 'before', new DriverError('unknown', 'the engine is away'));
    agent.order(stop);
    agent.order(forget);
    await vi.waitFor(() => expect(agent.warnings.length).toBeGreaterThan(0));
    expect(node.hasRecord()).toBe(true);
    node.process.mend(method);
    await vi.waitFor(() => expect(node.hasRecord()).toBe(false));
  });

  test('to a wait is asked again, and the end is not missed', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.fail('wait', 'before');
    await agent.bringToRunning();
    node.process.end(aKey, exited(7));
    await vi.waitFor(() => expect(agent.warnings).toHaveLength(1));
    node.process.mend('wait');
    await agent.sends('ended 7');
  });

  test('does not hold up what is wanted next: a new order ends the pause', async () => {
    const node = new TestNode();
    const first = await node.agent();
    first.order(prepare());
    await first.sends('prepared 10.0.0.7:4000');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    // All that is left to prepare is in the driver: nothing here waits for a disk.
    const nowhere = { pathFor: () => null, hostPathFor: () => null, isOwn: () => false };
    const places = { placeOf: () => null, pathOf: () => null };
    const checkpointDirs = { ...nowhere, ...places, prepare: () => {}, cleanUp: () => {} };
    const agent = await node.restart(first, { checkpointDirs });
    node.process.fail('prepare', 'before');
    agent.order(prepare());
    await vi.advanceTimersByTimeAsync(20_000);
    expect(agent.warnings.at(-1)).toMatch('"retryInMs":10000');
    agent.order(forget);
    await vi.advanceTimersByTimeAsync(0);
    expect(node.process.calls).toContain(`remove ${aKey}`);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test.each([
  ['a link to itself', (path: string) => symlinkSync('output.log', path)],
  ['a directory', (path: string) => mkdirSync(join(path, 'more'), { recursive: true })],
])(
  '%s in place of its output keeps neither the end of a task from being reported nor its removal',
  async (_, put) => {
    const node = new TestNode();
    const agent = await node.agent();
    await agent.bringToRunning();
    put(join(node.root, 'tasks', aKey, 'output.log'));
    node.process.end(aKey, exited(3));
    await agent.sends('ended 3');
    agent.order(forget);
    await vi.waitFor(() => expect([node.hasRecord(), agent.knows()]).toEqual([false, []]));
  },
);

describe('a full disk', () => {
  test('is why a task is not prepared, and is reported at once', async () => {
    const node = new TestNode();
    const agent = await node.agent({ records: new FullDisk(join(node.root, 'tasks')) });
    agent.order(prepare());
    await agent.sends('ended disk_full');
    expect(agent.reports.at(-1)?.exit?.startError).toEqual({
      kind: 'disk_full',
      message: 'no task directory: ENOSPC: no space left on device',
      node: 'a',
      nodeRank: 0,
      blame: 'storage',
      evidence: null,
    });
    expect(node.heldPorts.size).toBe(0);
    agent.order(forget);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
  });

  test('hides neither the start nor the end of a task, nor does the next agent miss them', async () => {
    const node = new TestNode();
    const records = new FullDisk(join(node.root, 'tasks'));
    records.isFull = false;
    const agent = await node.agent({ records });
    agent.order(prepare());
    await agent.sends('prepared 10.0.0.7:4000');
    records.isFull = true;
    agent.order(start);
    await agent.sends('running');
    node.process.end(aKey, exited(3));
    await agent.sends('ended 3');

    const next = await node.restart(agent);
    expect(next.knows()).toEqual(['ended 3']);
    expect(node.process.launches).toHaveLength(1);
  });
});

describe('a task without a record', () => {
  test('that runs is adopted, reported and stopped when the coordinator says so', async () => {
    const node = new TestNode();
    node.process.addRunning(aKey);
    const agent = await node.agent();
    // Until when it may run is not known here, either.
    await vi.waitFor(() => expect(agent.knows()).toEqual(['running frozen']));
    agent.order(stop);
    await agent.sends('ended SIGTERM');
    agent.order(forget);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
    expect(node.process.launches).toEqual([]);
  });

  test('that has ended is cleaned up', async () => {
    const node = new TestNode();
    node.docker.addRunning(aKey);
    node.docker.end(aKey, exited(0));
    const agent = await node.agent();
    expect(agent.knows()).toEqual([]);
    expect(node.docker.calls).toContain(`remove ${aKey}`);
  });

  test('that is released is not started: it may have run', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.fail('recover', 'before');
    agent.order({ ...start, assignment: anAssignment() });
    await vi.waitFor(() => expect(agent.warnings.length).toBeGreaterThan(0));

    // Nor is it by an agent that finds what this one had written down until then.
    node.process.mend('recover');
    const next = await node.restart(agent);
    next.order({ ...start, assignment: anAssignment() });
    await next.sends('ended lost');
    expect(node.process.launches).toEqual([]);
  });

  test('that is released and runs after all is adopted', async () => {
    const node = new TestNode();
    node.process.fail('list', 'before');
    const agent = await node.agent();
    node.process.addRunning(aKey);
    agent.order({ ...start, assignment: anAssignment() });
    await agent.sends('running');
    node.process.end(aKey, exited(5));
    await agent.sends('ended 5');
    expect(node.process.launches).toEqual([]);
  });
});

test('a task is not reported as prepared while nobody can tell whether it runs', async () => {
  const node = new TestNode();
  const agent = await node.agent();
  agent.order(prepare({ image: 'pytorch' }));
  await agent.sends('prepared 10.0.0.7:4000');
  node.docker.fail('start', 'after');
  node.docker.fail('recover', 'before');
  agent.order(start);
  await vi.waitFor(() => expect(agent.warnings.length).toBeGreaterThan(0));

  const next = await node.restart(agent);
  next.order(prepare({ image: 'pytorch' }));
  await vi.waitFor(() => expect(next.warnings.length).toBeGreaterThan(1));
  expect(next.sent).toEqual([]);
  node.docker.mend('recover');
  await next.sends('running');
  expect(node.docker.launches).toHaveLength(1);
});
