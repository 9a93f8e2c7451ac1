import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { leavingReason } from '../commands/drains.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { provesTerm } from '../leases/testimonyFixture.ts';
import { aJob, aNode, anAttempt, aSpec, aTask, jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';

/** With the leases of tests, from the moment a node was heard. */
const fencedMs = 10_080;

let memory: Memory;
let coordinator: TestCoordinator;
beforeEach(() => {
  memory = new Memory('test');
});
afterEach(() => coordinator.close());

const nameOf = (number: number) => nodeNameOf(`node-${number}`);
const spec = aSpec({ retry: { max_attempts: 3, on: ['node_lost'] } });

/** A running job of one task for each of so many nodes; job 1 is on node-1. */
function someRunningJobs(count: number, leaseMs: number | null = 6_000): void {
  for (let number = 1; number <= count; number += 1) {
    const tasks = [aTask(0, { node: nameOf(number), state: 'running' })];
    const attempt = anAttempt(1, { state: 'running', tasks, leaseMs });
    const id = jobIdOf(number);
    memory.nodes.set(nameOf(number), aNode(nameOf(number)));
    memory.jobs.set(id, aJob(number, { spec, lastAttempt: 1, state: { kind: 'running', attempt } }));
    memory.jobsBySubmitSeq.set(number, id);
    memory.attempts.set(id, new Map([[1, attempt]]));
  }
}

/** On what the one before has left behind; its nodes are yet to dial in. */
async function start(): Promise<void> {
  coordinator = await startTestCoordinator({ memory });
  for (const node of coordinator.state.nodes.keys()) coordinator.agents.expect(node);
}

async function restart(): Promise<void> {
  await coordinator.close();
  await start();
}

/** Ticks of a second each. */
async function pass(seconds: number, answering: readonly number[] = []): Promise<void> {
  for (let tick = 0; tick < seconds; tick += 1) {
    coordinator.clock.nowMs += 1_000;
    for (const number of answering) heard(number);
    await Promise.all(coordinator.leases.run());
  }
}

const heard = (number: number) =>
  coordinator.agents.admit({
    name: nameOf(number),
    instanceId: `instance-${number}`,
    bootId: 'boot',
    origin: null,
  });
const stateOf = (number: number) => coordinator.state.jobs.get(jobIdOf(number))?.state.kind ?? 'ended';
const eventsOf = (kind: string) => [...memory.events.values()].filter((event) => event.kind === kind);
const refused = { code: 'failed_precondition' };

describe('a silent node', () => {
  test('keeps its tasks until T2, counted from the last contact; then they end as lost', async () => {
    someRunningJobs(1);
    await start();
    await pass(2, [1]);
    await pass(Math.floor(fencedMs / 1_000));
    expect(stateOf(1)).toBe('running');
    expect(coordinator.leases.fencedInMs(nameOf(1))).toBe(fencedMs % 1_000);
    await pass(1);
    expect(stateOf(1)).toBe('queued');
    expect(memory.attempts.get(jobIdOf(1))?.get(1)?.cause).toMatchObject({
      kind: 'node_lost',
      node: 'node-1',
      message: 'node node-1 has been silent for 11 s and its lease has expired',
    });
    const task = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
    expect(eventsOf('node.fenced')).toMatchObject([{ subject: 'node-1', data: { tasks: [task] } }]);
    await pass(20);
    expect(eventsOf('node.fenced'), 'and once').toHaveLength(1);
  });

  test('is named by the explanation of its job, with what happens when and what helps', async () => {
    someRunningJobs(2);
    await start();
    await pass(2, [1, 2]);
    await pass(4, [1]);
    const { summary, details, nextSteps } = await coordinator.api.explainJob(jobIdOf(2));
    expect(summary).toMatch(/ is running, attempt 1; node-2 has been silent for 4 s$/);
    // The margin of the tests' leases is 2 s.
    expect(details).toContain(
      'node node-2 has been silent for 4 s: its task may be running, and is frozen when its lease ends, in 4 s at the latest; ' +
        'in 6 s the attempt ends as lost unless the node responds before',
    );
    expect(nextSteps[1]).toBe('if node-2 is certainly off, do not wait: muster node confirm-dead node-2');
    expect(nextSteps.join()).not.toContain('nothing needs to be done');
  });

  test('that responds before its tasks are ended keeps them', async () => {
    someRunningJobs(1);
    await start();
    await pass(10);
    coordinator.clock.nowMs += 1_000;
    const work = coordinator.leases.run();
    heard(1);
    await Promise.all(work);
    expect(stateOf(1)).toBe('running');
    expect(eventsOf('node.fenced')).toEqual([]);
  });

  test('with a longer lease is fenced later, and with none never', async () => {
    someRunningJobs(2);
    const hourMs = 3_600_000;
    const long = anAttempt(1, { ...memory.attempts.get(jobIdOf(1))?.get(1), leaseMs: hourMs });
    const held = anAttempt(1, { ...memory.attempts.get(jobIdOf(2))?.get(1), leaseMs: null });
    memory.attempts.set(jobIdOf(1), new Map([[1, long]]));
    memory.attempts.set(jobIdOf(2), new Map([[1, held]]));
    await start();
    await pass(20);
    expect([stateOf(1), stateOf(2)]).toEqual(['running', 'running']);
    expect(coordinator.leases.fencedInMs(nameOf(1))).toBeGreaterThan(hourMs - 20_000);
    expect(coordinator.leases.fencedInMs(nameOf(2))).toBeNull();
    await pass(3_660);
    expect([stateOf(1), stateOf(2)]).toEqual(['queued', 'running']);
  });

  test('is not one while this process itself did not run', async () => {
    someRunningJobs(1);
    await start();
    await pass(2, [1]);
    coordinator.clock.nowMs += 600_000;
    await Promise.all(coordinator.leases.run());
    expect(coordinator.agents.isSilent(nameOf(1))).toBe(false);
    expect(stateOf(1)).toBe('running');
    await pass(12);
    expect(stateOf(1), 'but it is later').toBe('queued');
  });

  test('counts as having responded at the start of a coordinator: nothing is rescheduled before leases from before have run out', async () => {
    someRunningJobs(1);
    await start();
    await pass(9);
    await restart();
    await pass(10);
    expect(stateOf(1)).toBe('running');
    await pass(1);
    expect(stateOf(1)).toBe('queued');
    expect(memory.attempts.get(jobIdOf(1))?.get(1)?.cause?.message).toBe(
      'node node-1 has not responded since this coordinator started and its lease has expired',
    );
  });
});

describe('a maintenance', () => {
  test('keeps silent nodes from being fenced for as long as it lasts, over a restart and its end', async () => {
    someRunningJobs(1);
    await start();
    await coordinator.api.setMaintenance(60_000);
    expect(await coordinator.api.getCluster()).toMatchObject({ maintenanceMs: 60_000 });
    const attempt = memory.attempts.get(jobIdOf(1))?.get(1);
    if (attempt === undefined) throw new Error('there is no attempt');
    expect(coordinator.leases.grant(nameOf(1), attempt)).toBe(60_000);
    await pass(20);
    await coordinator.api.setMaintenance(0);
    expect(coordinator.leases.grant(nameOf(1), attempt)).toBe(6_000);
    await pass(20);
    expect(stateOf(1)).toBe('running');
    await restart();
    await pass(60);
    expect(stateOf(1), 'nobody knows any more when it was granted').toBe('running');
    await pass(6);
    expect(stateOf(1)).toBe('queued');
  });

  test.each([9_999, -1, 24 * 3_600_000 + 1])('of %i ms is refused', async (forMs) => {
    await start();
    await expect(coordinator.api.setMaintenance(forMs)).rejects.toMatchObject({ code: 'invalid' });
  });
});

describe('confirm-dead', () => {
  test('ends the tasks of a silent node at once, also those that are never fenced, and names who asked for it', async () => {
    someRunningJobs(1, null);
    await start();
    await pass(4);
    const node = await coordinator.api.confirmDead('node-1');
    expect(node).toMatchObject({ name: 'node-1', state: 'silent', fencedInMs: null });
    expect(stateOf(1)).toBe('queued');
    expect(eventsOf('node.confirmed_dead')).toMatchObject([{ subject: 'node-1', data: { by: 'admin' } }]);
    await coordinator.api.confirmDead('node-1');
    expect(eventsOf('node.confirmed_dead'), 'once').toHaveLength(1);
  });

  test('is refused of a node that answers, has only just stopped to, or is unknown', async () => {
    someRunningJobs(1);
    await start();
    await expect(coordinator.api.confirmDead('node-1')).rejects.toMatchObject(refused);
    await pass(4);
    heard(1);
    await expect(coordinator.api.confirmDead('node-1')).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^node-1 responds/),
    });
    expect(stateOf(1)).toBe('running');
    await expect(coordinator.api.confirmDead('node-9')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('when most nodes fall silent at once', () => {
  test('nothing is rescheduled until half of them are back, and then only what is silent still', async () => {
    someRunningJobs(5);
    await start();
    await pass(1, [1, 2, 3, 4, 5]);
    await pass(4, [4, 5]);
    expect(eventsOf('cluster.suspect')).toMatchObject([
      { subject: 'cluster', data: { silentNodes: 3, nodes: 5, names: ['node-1', 'node-2', 'node-3'] } },
    ]);
    expect((await coordinator.api.getCluster()).pausedBecause).toMatch(
      /^3 of 5 nodes became silent together/,
    );
    expect(coordinator.leases.suspectNodes).toBe(3);
    await pass(60, [4, 5]);
    expect([1, 2, 3].map(stateOf)).toEqual(['running', 'running', 'running']);
    await pass(2, [3, 4, 5]);
    expect(eventsOf('cluster.trusted')).toHaveLength(1);
    expect((await coordinator.api.getCluster()).pausedBecause).toBe('');
    expect([1, 2, 3].map(stateOf), 'they come back one after the other').toEqual(Array(3).fill('running'));
    await pass(4, [2, 3, 4, 5]);
    expect([1, 2, 3].map(stateOf)).toEqual(['running', 'running', 'running']);
    await pass(1, [2, 3, 4, 5]);
    expect([1, 2, 3].map(stateOf)).toEqual(['queued', 'running', 'running']);
  });

  test('a person can still say of each that it is dead, and it counts no longer', async () => {
    someRunningJobs(5);
    await start();
    await pass(1, [1, 2, 3, 4, 5]);
    await pass(6, [4, 5]);
    expect(coordinator.leases.paused()).not.toBeNull();
    await coordinator.api.confirmDead('node-1');
    expect(stateOf(1)).toBe('queued');
    await pass(1, [4, 5]);
    expect(coordinator.leases.paused()).toBeNull();
  });

  test('nodes without contact since the start and that have no tasks are missed by nobody', async () => {
    someRunningJobs(1);
    for (const number of [2, 3, 4, 5]) memory.nodes.set(nameOf(number), aNode(nameOf(number)));
    await start();
    await pass(12);
    expect(eventsOf('cluster.suspect')).toEqual([]);
    expect(stateOf(1)).toBe('queued');
  });

  test('those that announced it and hold no task are missed by nobody, and those that hold one are', async () => {
    const drain = { reason: leavingReason, sinceMs: 0, deadlineMs: 0 };
    const leave = (...numbers: number[]) => {
      for (const number of numbers) memory.nodes.set(nameOf(number), aNode(nameOf(number), { drain }));
    };
    someRunningJobs(2);
    leave(3, 4, 5);
    await start();
    await pass(1, [1, 2, 3, 4, 5]);
    await pass(12, [1, 2]);
    expect(eventsOf('cluster.suspect')).toEqual([]);
    expect(coordinator.leases.paused()).toBeNull();

    await coordinator.close();
    someRunningJobs(5);
    leave(3, 4, 5);
    await start();
    await pass(1, [1, 2, 3, 4, 5]);
    await pass(4, [1, 2]);
    expect(eventsOf('cluster.suspect')).toMatchObject([{ data: { silentNodes: 3, nodes: 5 } }]);
  });

  test('events about the cluster are numbered on after a restart', async () => {
    someRunningJobs(3);
    await start();
    await pass(6);
    await restart();
    await pass(6);
    expect(eventsOf('cluster.suspect').map(({ subjectSeq }) => subjectSeq)).toEqual([1, 2]);
  });
});

describe('a store that is older than the cluster', () => {
  test('reschedules nothing and says why, until it is advanced', async () => {
    someRunningJobs(1);
    await start();
    provesTerm(coordinator, nameOf(2), 7);
    expect((await coordinator.api.getCluster()).pausedBecause).toMatch(/term 7.*muster store advance$/);
    await pass(20);
    expect(stateOf(1)).toBe('running');

    const cluster = await coordinator.api.advanceStore();
    expect(cluster.pausedBecause).toMatch(/unknown attempts to expire in 11 s/);
    expect(coordinator.leases.term).toBe(8);
    await pass(12);
    expect(coordinator.leases.paused()).toBeNull();
    expect(stateOf(1)).toBe('queued');
  });
});
