import { silentLogger } from '@muster/common/log';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import { connected, running, wireTask } from '../session/sessionFixture.ts';
import { aKey } from '../tasks/managerFixture.ts';
import { Leaving, type LeavingParts } from './leaving.ts';

function aLeaving(parts: Partial<LeavingParts> = {}) {
  const clock = { nowMs: 1_000 };
  const announced: (number | null)[] = [];
  const leaving: Leaving = new Leaving({
    graceMs: 90_000,
    tasks: () => 0,
    onLeaving: async () => {
      announced.push(leaving.leavingInMs());
    },
    monotonicMs: () => clock.nowMs,
    log: silentLogger,
    ...parts,
  });
  onTestFinished(() => leaving.close());
  return { leaving, clock, announced };
}

/** Whether it has resolved by the time that a whole turn of the event loop and two looks have passed. */
async function isLeft(left: Promise<void>): Promise<boolean> {
  const waited = new Promise<false>((resolve) => setTimeout(resolve, 250, false));
  return Promise.race([left.then(() => true as const), waited]);
}

test('a node that stays says nothing of leaving', () => {
  const { leaving, announced } = aLeaving();
  expect(leaving.leavingInMs()).toBeNull();
  expect(announced).toEqual([]);
});

describe('a node that leaves', () => {
  test('says so at once, and waits until no task is left', async () => {
    let tasks = 2;
    const { leaving, announced, clock } = aLeaving({ tasks: () => tasks });
    const left = leaving.leave();
    expect(announced).toEqual([90_000]);
    clock.nowMs += 30_000;
    expect(leaving.leavingInMs()).toBe(60_000);
    expect(await isLeft(left)).toBe(false);
    tasks = 0;
    await left;
  });

  test('waits for no task longer than there is time', async () => {
    const { leaving, clock } = aLeaving({ tasks: () => 1 });
    const left = leaving.leave();
    clock.nowMs += 90_000;
    await left;
    expect(leaving.leavingInMs()).toBe(0);
  });

  test('is asked twice and gets no more time', async () => {
    let tasks = 1;
    const { leaving, announced, clock } = aLeaving({ tasks: () => tasks });
    void leaving.leave();
    clock.nowMs += 60_000;
    const left = leaving.leave();
    expect([leaving.leavingInMs(), announced.length]).toEqual([30_000, 1]);
    tasks = 0;
    await left;
  });

  test('goes on when the report to the coordinator fails: the next Hello says it', async () => {
    const { leaving } = aLeaving({ onLeaving: () => Promise.reject(new Error('no status')) });
    await leaving.leave();
  });

  test('ends when the agent does', async () => {
    const { leaving } = aLeaving({ tasks: () => 1 });
    const left = leaving.leave();
    leaving.close();
    await left;
    await leaving.leave();
  });
});

test('with a coordinator: it is reported, stops the task, and the node is left when it has done with it', async () => {
  const all = await connected();
  await running(all);
  const { first, leaving, agent, node } = all;
  const left = leaving.leave();
  expect((await first.gets('status')).leavingInMs).toBe(90_000);
  expect(await isLeft(left)).toBe(false);
  first.send({ stop: { task: wireTask, graceMs: 5_000, signal: 'SIGTERM' } });
  await vi.waitFor(() => expect(agent.knows()).toEqual(['ended SIGTERM']));
  expect(node.process.calls).toContain(`stop ${aKey} SIGTERM 5000`);
  // Its end may not have arrived.
  expect(await isLeft(left)).toBe(false);
  first.send({ forget: { task: wireTask } });
  await left;
});

test('a task that ends by itself meanwhile is reported as ever', async () => {
  const all = await connected();
  await running(all);
  const left = all.leaving.leave();
  all.node.process.end(aKey, exited(0));
  const ends = () => all.first.received.map(({ report }) => report?.exit?.exitCode);
  await vi.waitFor(() => expect(ends()).toContain(0));
  all.first.send({ forget: { task: wireTask } });
  await left;
});
