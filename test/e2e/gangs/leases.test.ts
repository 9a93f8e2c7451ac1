/** A coordinator, or nodes, that are away: nothing ends that need not, nothing runs twice, and a person has the last word. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobSpecFile } from '@muster/common/spec/types';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { seenFromOutside } from '../../support/hosts/enter.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { startNamespaceCluster } from '../../support/hosts/namespaceHosts.ts';
import { type Beat, boottimeMs, readBeats, violations } from '../../support/hosts/signOfLife.ts';
import { waitFor } from '../../support/services.ts';

/** Longer than a machine that is busy with something else keeps a node from asking for its next lease. */
const leaseMs = 8_000;
/** T2 with such a lease, a fence of 2 s and a margin of 2 s, rounded up. */
const fencedAfterMs = 12_100;

let cluster: GangCluster;
beforeAll(async () => {
  cluster = await startNamespaceCluster({ hosts: 4, gpus: 3, lease: `${leaseMs}ms` });
});

/** Beats until it is stopped. */
function beating(spec: JobSpecFile): JobSpecFile {
  return {
    command: ['/usr/bin/python3', cluster.program('signOfLife.py'), cluster.sharedDir],
    // No python3 to be found: hosts that were away are measured by their agents, and not with PyTorch.
    env: { PATH: cluster.sharedDir },
    stop_grace: '1s',
    retry: { max_attempts: 3, backoff: { initial: '100ms', max: '100ms' } },
    ...spec,
  };
}

async function startBeating(spec: JobSpecFile): Promise<string> {
  const jobId = await cluster.submit(beating(spec));
  const job = await cluster.untilJob(jobId, 'is running', ({ state }) => state === 'running');
  await untilBeatingOn(jobId, job.attempts.at(-1)?.tasks.length ?? 0);
  return jobId;
}

async function stop(...jobIds: readonly string[]): Promise<void> {
  await cluster.api.stopJobs(jobIds);
  for (const jobId of jobIds) {
    await cluster.untilEnded(jobId);
    const endSeenMs = boottimeMs();
    await untilMoment(endSeenMs + 100);
    expect(violations(readBeats(cluster.sharedDir), jobId, { endSeenMs })).toEqual([]);
  }
}

function beatsOf(jobId: string, fromMs = 0, untilMs = Number.POSITIVE_INFINITY): readonly Beat[] {
  return readBeats(cluster.sharedDir).filter(
    (beat) => beat.job === jobId && beat.atMs >= fromMs && beat.atMs < untilMs,
  );
}

const pidsOf = (beats: readonly Beat[]) =>
  [...new Set(beats.map(({ rank, pid }) => `rank ${rank}: ${pid}`))].sort();

/** From now on so many ranks have given a sign of life again. */
async function untilBeatingOn(jobId: string, ranks: number): Promise<void> {
  const sinceMs = boottimeMs();
  await waitFor(`${ranks} ranks of ${jobId} beat`, () => pidsOf(beatsOf(jobId, sinceMs)), {
    until: (pids) => pids.length === ranks,
  });
}

/** The deadlines of a job's leases, as its nodes have written them down: CLOCK_BOOTTIME in milliseconds, one for each task. */
function deadlinesOf(jobId: string): readonly number[] {
  return cluster.hosts.flatMap(({ machine }) => {
    const tasks = seenFromOutside(machine, join(machine.homeDir, 'data/tasks'));
    const own = readdirSync(tasks).filter((name) => name.startsWith(jobId));
    return own.map((name) => {
      const lease = JSON.parse(readFileSync(join(tasks, name, 'lease'), 'utf8')) as { deadlineMs: number };
      return lease.deadlineMs;
    });
  });
}

/** Waits until so many tasks of a job are frozen, as their agents log it. @returns CLOCK_BOOTTIME of a moment after that */
async function untilFrozen(jobId: string, tasks: number): Promise<number> {
  const changes = ['the lease of a task has run out', 'a task resumes with a new lease'];
  const lastChange = ({ agent }: Host) =>
    agent.log
      .split('\n')
      .filter((line) => line.includes(jobId) && changes.some((change) => line.includes(change)))
      .at(-1);
  const frozen = () => cluster.hosts.filter((host) => lastChange(host)?.includes(changes[0] ?? ''));
  await waitFor(`${tasks} tasks of ${jobId} are frozen`, () => frozen().map(({ name }) => name), {
    until: (names) => names.length === tasks,
  });
  return boottimeMs();
}

/** Whether any task of it was frozen, as far as its nodes have reported. */
async function wasFrozen(jobId: string): Promise<boolean> {
  for await (const { kind } of cluster.api.watchEvents({ sinceSeq: 0, subject: jobId }))
    if (kind === 'task.frozen') return true;
  return false;
}

/** A moment of CLOCK_BOOTTIME: leases run out by time, whatever else happens. */
async function untilMoment(momentMs: number): Promise<void> {
  await waitFor(`the clock shows ${momentMs}`, () => boottimeMs(), {
    until: (nowMs) => nowMs >= momentMs,
  });
}

/** Takes the coordinator away. @returns what brings it back */
async function takeCoordinatorAway(): Promise<{
  readonly sinceMs: number;
  readonly back: () => Promise<void>;
}> {
  await cluster.coordinator.kill();
  const sinceMs = boottimeMs();
  return {
    sinceMs,
    back: async () => {
      await cluster.coordinator.start();
      await cluster.untilOnline();
    },
  };
}

beforeEach(() => cluster.untilOnline());

test('in a maintenance the coordinator is away for longer than a lease, and nothing is frozen', async () => {
  const jobId = await startBeating({ resources: { nodes: 4, gpus: 1 } });
  const setMs = boottimeMs();
  // No longer: until its end a restarted coordinator fences no node.
  expect(await cluster.muster('maintenance', '--for', '60s')).toContain('Leases last for');
  // Each node takes the longer lease with the answer to its next question.
  const longMs = setMs + 50_000;
  await waitFor('every node has a long lease', () => deadlinesOf(jobId), {
    until: (deadlines) => deadlines.length === 4 && deadlines.every((deadlineMs) => deadlineMs > longMs),
  });
  const { sinceMs, back } = await takeCoordinatorAway();
  await untilMoment(sinceMs + 2 * leaseMs);
  await back();
  await cluster.muster('maintenance', '--end');
  await untilBeatingOn(jobId, 4);
  expect(await wasFrozen(jobId)).toBe(false);
  expect((await cluster.api.getJob(jobId)).attempts).toHaveLength(1);
  await stop(jobId);
});

test('a coordinator that is away for two leases: frozen, killed or left alone as the job says, and thawed as it was', async () => {
  const freezes = await startBeating({ resources: { nodes: 3, gpus: 1 } });
  const holds = await startBeating({ resources: { nodes: 2, gpus: 1 }, node_loss: 'hold' });
  const dies = await startBeating({ resources: { gpus: 1 }, on_lease_expiry: 'kill' });
  const pids = [freezes, holds].map((jobId) => pidsOf(beatsOf(jobId)));

  const { sinceMs, back } = await takeCoordinatorAway();
  await untilBeatingOn(freezes, 3);
  // Each was asked for before the coordinator went.
  for (const deadlineMs of deadlinesOf(freezes)) expect(deadlineMs).toBeLessThanOrEqual(sinceMs + leaseMs);
  const stillMs = await untilFrozen(freezes, 3);
  for (const deadlineMs of deadlinesOf(freezes)) expect(deadlineMs).toBeLessThanOrEqual(stillMs);
  expect(cluster.processesOf(freezes), 'and is there').toHaveLength(3);
  await waitFor('the one that was to be killed is gone', () => cluster.processesOf(dies), {
    until: (left) => left.length === 0,
  });
  await untilMoment(sinceMs + 2 * leaseMs);
  expect(beatsOf(freezes, stillMs)).toEqual([]);
  await untilBeatingOn(holds, 2);
  await back();

  await untilBeatingOn(freezes, 3);
  expect([freezes, holds].map((jobId) => pidsOf(beatsOf(jobId)))).toEqual(pids);
  expect([await wasFrozen(freezes), await wasFrozen(holds)]).toEqual([true, false]);
  for (const jobId of [freezes, holds]) {
    expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running', attempts: [{}] });
  }
  const again = await cluster.untilJob(
    dies,
    'runs again',
    ({ attempts }) => attempts.at(-1)?.runningAtMs != null && attempts.length === 2,
  );
  expect(again.attempts[0]?.cause).toMatchObject({
    kind: 'node_lost',
    nodeRank: 0,
    message: expect.stringContaining('lease'),
  });
  await stop(freezes, holds, dies);
});

test('most nodes fall silent together: the coordinator suspects itself, says so and waits; then they are measured anew', async () => {
  const jobId = await startBeating({ resources: { nodes: 4, gpus: 1 } });
  const pids = pidsOf(beatsOf(jobId));
  const cut = cluster.hosts.slice(1);
  const sinceMs = boottimeMs();
  await Promise.all(cut.map((host) => host.unplug()));
  onTestFinished(async () => void (await Promise.all(cut.map((host) => host.plug()))));
  await waitFor('it pauses', async () => (await cluster.api.getCluster()).pausedBecause, {
    until: (because) => because !== '',
  });
  const stillMs = await untilFrozen(jobId, 3);
  await untilMoment(sinceMs + fencedAfterMs + 2_000);
  expect(await cluster.muster('nodes')).toContain(
    'Nothing is started or rescheduled: 3 of 4 nodes became silent together',
  );
  expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running', attempts: [{}] });
  expect(beatsOf(jobId, stillMs).filter(({ rank }) => rank !== 0)).toEqual([]);

  await Promise.all(cut.map((host) => host.plug()));
  await cluster.untilOnline();
  await untilBeatingOn(jobId, 4);
  expect(pidsOf(beatsOf(jobId))).toEqual(pids);
  await waitFor('it goes on', async () => (await cluster.api.getCluster()).pausedBecause, {
    until: (because) => because === '',
  });
  expect((await cluster.api.getJob(jobId)).attempts).toHaveLength(1);
  await stop(jobId);

  const next = await startBeating({ resources: { nodes: 2, gpus: 1 } });
  const names = (await cluster.api.getJob(next)).attempts[0]?.tasks.map(({ node }) => node) ?? [];
  const [measured] = (await cluster.api.listNodes()).filter(({ name }) => name === names[1]);
  // A path that was slow at first may have been measured from another node before.
  expect(measured?.bandwidths).toContainEqual(expect.objectContaining({ peer: names[0], backend: 'tcp' }));
  await stop(next);
});

test('a node is lost: an elastic job goes on with the others where it was, one that holds waits for the word of a person', async () => {
  const counting = ['/usr/bin/python3', cluster.program('countSteps.py'), cluster.sharedDir];
  const elastic = await startBeating({
    command: counting,
    resources: { nodes: { min: 1, max: 4 }, gpus: 1 },
  });
  const holds = await startBeating({ resources: { nodes: 2, gpus: 1 }, node_loss: 'hold' });
  for (const rank of [0, 1, 2, 3]) await cluster.untilOutput(elastic, 'in a world of 4\n', { rank });
  const victim = cluster.host((await cluster.api.getJob(holds)).attempts[0]?.tasks[1]?.node ?? '');
  const [rank = -1] = ((await cluster.api.getJob(elastic)).attempts[0]?.tasks ?? [])
    .filter(({ node }) => node === victim.name)
    .map(({ nodeRank }) => nodeRank);
  await waitFor('there is a checkpoint', () => beatsOf(elastic).length, { until: (count) => count > 40 });

  await victim.kill();
  const smaller = await cluster.untilJob(
    elastic,
    'goes on',
    ({ attempts }) => attempts.length === 2 && attempts[1]?.runningAtMs != null,
  );
  expect(smaller.attempts[0]?.cause).toMatchObject({ kind: 'node_lost', node: victim.name, nodeRank: rank });
  expect(smaller.attempts[1]?.tasks.map(({ node }) => node)).not.toContain(victim.name);
  for (const each of [0, 1, 2]) {
    expect(await cluster.untilOutput(elastic, 'in a world of 3\n', { rank: each })).toMatch(
      /^goes on from step [1-9]\d* in a world of 3$/m,
    );
  }

  expect(await cluster.api.getJob(holds), 'nobody knows that it is dead').toMatchObject({
    state: 'running',
    attempts: [{}],
  });
  expect(await cluster.muster('node', 'confirm-dead', victim.name)).toContain('is confirmed dead');
  const elsewhere = await cluster.untilJob(
    holds,
    'runs elsewhere',
    ({ attempts }) => attempts[1]?.runningAtMs != null,
  );
  expect(elsewhere.attempts[0]?.cause).toMatchObject({
    kind: 'node_lost',
    node: victim.name,
    message: expect.stringContaining('is dead, confirmed by'),
  });
  expect(elsewhere.attempts[1]?.tasks.map(({ node }) => node)).not.toContain(victim.name);
  expect(violations(readBeats(cluster.sharedDir), elastic, { fenced: [{ attempt: 1, rank }] })).toEqual([]);
  await victim.boot();
  await stop(elastic, holds);
});
