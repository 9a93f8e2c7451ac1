/**
 * kill -9 of every process of Muster, at random moments, under load: no acknowledged job is lost, nothing runs twice,
 * running tasks notice nothing. The seed of a run is printed when it fails; MUSTER_TEST_SEED repeats its choices. With
 * MUSTER_TEST_TRIALS=full there are more kills.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import { describe, expect, onTestFailed, test } from 'vitest';
import { type Chance, seededChance } from '../support/chance.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { Daemon } from '../support/daemon.ts';
import { Load } from '../support/load.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

/**
 * A busy machine takes longer to start an agent than the short leases of these clusters last. A lease that ends is another
 * fault, with tests of its own; here it would end jobs that have to notice nothing.
 */
const patientLeases = ['--heartbeat', '5s', '--lease', '2m'];

interface Scene {
  readonly cluster: Cluster;
  readonly chance: Chance;
  readonly load: Load;
}

async function underLoad(): Promise<Scene> {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const cluster = await startCluster({ nodes: 2, gpus: 2, cpus: 16, coordinatorFlags: patientLeases });
  const load = new Load(cluster, chance);
  await load.start();
  return { cluster, chance, load };
}

/** What was killed is started again after a while, in which the rest runs without it. */
async function killAndRestart({ chance }: Scene, daemon: Daemon): Promise<void> {
  await daemon.kill();
  if (chance.integer(0, 3) === 0) await delay(chance.integer(0, 500));
  await daemon.start();
}

/** A job of the load ended the way its script did, after as many attempts as its policy allows. */
function expectEndAsScripted({ load }: Scene, job: JobView): void {
  const code = Number(load.specOf(job.id).labels?.['code']);
  const ran = job.attempts.filter((attempt) => attempt.tasks.some(({ exit }) => exit?.exitCode != null));
  const seen = `${job.id} ended with ${JSON.stringify({ cause: job.cause, attempts: job.attempts })}`;
  expect(job, seen).toMatchObject(
    code === 0 ? { state: 'succeeded' } : { state: 'failed', cause: { kind: 'exit_code' } },
  );
  expect(ran.length, seen).toBe(code === 0 ? 1 : (load.specOf(job.id).retry?.max_attempts ?? 1));
}

/** Every line of every rank of the last attempt is there once. */
async function expectOutputOnce({ cluster, load }: Scene, job: JobView): Promise<void> {
  const label = load.specOf(job.id).labels?.['label'];
  for (const { nodeRank, exit } of job.attempts.at(-1)?.tasks ?? []) {
    if (exit?.exitCode == null) continue;
    expect(await cluster.output(job.id, { rank: nodeRank })).toBe(`first ${label}\nlast ${label}\n`);
  }
}

async function expectEventsWithoutGap({ cluster }: Scene): Promise<void> {
  const events = await cluster.events();
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  const last = new Map<string, number>();
  for (const { subject, subjectSeq } of events) {
    expect(subjectSeq, subject).toBe((last.get(subject) ?? 0) + 1);
    last.set(subject, subjectSeq);
  }
}

const coordinatorKills = trialsOf(30, 8);
const agentKills = trialsOf(20, 6);
const bothKills = trialsOf(8, 4);
/** Submitted while daemons are killed. */
const jobsMin = trialsOf(100, 60);

describe('kill -9', () => {
  test(`of the coordinator, ${coordinatorKills} times`, async () => {
    const scene = await underLoad();
    const { cluster, chance, load } = scene;
    for (let round = 0; round < coordinatorKills; round += 1) {
      await delay(chance.integer(0, 1_000));
      await killAndRestart(scene, cluster.coordinator);
    }
    await load.untilSubmitted(jobsMin);
    await load.stop();
    await load.expectJobsAreRequests();
    const ended = await load.settle();
    expect(ended.length).toBeGreaterThanOrEqual(jobsMin);
    for (const job of ended) expectEndAsScripted(scene, job);
    for (const job of ended) await expectOutputOnce(scene, job);
    await load.expectLongJobsUntouched();
    await load.expectHistoryAgrees();
    await expectEventsWithoutGap(scene);
  });

  test(`of agents, ${agentKills} times`, async () => {
    const scene = await underLoad();
    const { cluster, chance, load } = scene;
    for (let round = 0; round < agentKills; round += 1) {
      await delay(chance.integer(0, 600));
      await killAndRestart(scene, cluster.agent(chance.integer(0, 1)));
    }
    await load.untilSubmitted(jobsMin);
    await load.stop();
    const ended = await load.settle();
    expect(ended.length).toBeGreaterThanOrEqual(jobsMin);
    for (const job of ended) expectEndAsScripted(scene, job);
    for (const job of ended) await expectOutputOnce(scene, job);
    await load.expectLongJobsUntouched();
    await load.expectHistoryAgrees();
  });

  test('of guards, 6 times: tasks run on, and an end that nobody saw is called unknown', async () => {
    const scene = await underLoad();
    const { cluster, chance, load } = scene;
    for (let round = 0; round < 6; round += 1) {
      await delay(chance.integer(200, 1_000));
      const agent = cluster.agent(round % 2);
      const pid = await waitFor('the guard runs', () => cluster.guardPid(agent));
      process.kill(pid ?? 0, 'SIGKILL');
    }
    await load.stop();
    const ended = await load.settle();
    const unseen = ended.filter(({ cause }) => cause?.kind === 'unknown');
    for (const job of unseen) {
      expect(job.state).toBe('failed');
      expect(job.attempts.at(-1)?.tasks.some(({ exit }) => exit?.statusLost === true)).toBe(true);
    }
    for (const job of ended) if (!unseen.includes(job)) expectEndAsScripted(scene, job);
    // The guards that started them are gone, and with them the only parents that could read an exit code from the kernel.
    await load.expectLongJobsUntouched({
      state: 'failed',
      cause: expect.objectContaining({ kind: 'unknown' }),
    });
    await load.expectHistoryAgrees();
  });

  test(`of coordinator and agents at the same time, ${bothKills} times`, async () => {
    const scene = await underLoad();
    const { cluster, chance, load } = scene;
    for (let round = 0; round < bothKills; round += 1) {
      await delay(chance.integer(0, 1_500));
      const daemons = [cluster.coordinator, cluster.agent(chance.integer(0, 1))];
      await Promise.all(daemons.map((daemon) => daemon.kill()));
      await Promise.all(daemons.map((daemon) => daemon.start()));
    }
    await load.stop();
    await load.expectJobsAreRequests();
    const ended = await load.settle();
    for (const job of ended) expectEndAsScripted(scene, job);
    for (const job of ended) await expectOutputOnce(scene, job);
    await load.expectLongJobsUntouched();
    await load.expectHistoryAgrees();
    await expectEventsWithoutGap(scene);
  });
});
