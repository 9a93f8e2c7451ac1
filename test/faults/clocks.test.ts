/**
 * The clocks of running daemons are set by a second up to 400 days, forward and back, together and alone, with restarts in between: no
 * job ends by it, nothing is removed, nothing expires, no cron trigger fires. MUSTER_TEST_SEED repeats its choices. With
 * MUSTER_TEST_TRIALS=full there are 50 steps.
 */
import { beforeAll, expect, onTestFailed, test } from 'vitest';
import { type Chance, seededChance } from '../support/chance.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { stablePort } from '../support/places.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

const dayMs = 86_400_000;
const steps = trialsOf(50, 3);
const titles = ['coordinator', 'node-1', 'node-2'] as const;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({
    nodes: 2,
    coordinatorFlags: ['--listen', `0.0.0.0:${await stablePort()}`, '--keep-jobs', '30d'],
    settableClocks: true,
  });
});

/** From a second to 400 days, each order of magnitude as often as the others. */
function someStepMs(chance: Chance): number {
  const sizeMs = Math.round(1_000 * ((400 * dayMs) / 1_000) ** (chance.integer(0, 1_000) / 1_000));
  return chance.integer(0, 1) === 0 ? sizeMs : -sizeMs;
}

test(`${steps} steps of clocks by up to 400 days decide nothing`, async () => {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const { api } = cluster;
  const specJson = JSON.stringify({ name: 'nightly', steps: { a: { run: 'true' } } });
  // Far away from the time at which this runs.
  const hour = (new Date().getUTCHours() + 12) % 24;
  await api.createTrigger({ name: 'nightly', specJson, cron: `0 ${hour} * * *`, missed: 'run_once' });
  const ended = await cluster.run({ name: 'ended', command: 'echo kept' });
  const running = await cluster.submit({ name: 'runs', command: 'echo began; exec sleep 100000' });
  await cluster.untilOutput(running, 'began\n');
  const firstSeq = (await api.getCluster()).lastEventSeq;

  for (let round = 0; round < steps; round += 1) {
    const stepMs = someStepMs(chance);
    const who = round === 0 ? [titles[0]] : titles.filter(() => chance.integer(0, 1) === 0);
    for (const title of who) cluster.setClock(title, stepMs);
    const isLarge = who.includes('coordinator') && Math.abs(stepMs) > 12_000;
    const what = `${who.join(', ') || 'nobody'} by ${stepMs} ms`;
    if (isLarge)
      await waitFor(`a step of ${what} is noticed`, async () => (await api.getCluster()).clockProblem !== '');
    if (chance.integer(0, 2) === 0) {
      await cluster.coordinator.kill();
      await cluster.coordinator.start();
      await cluster.untilOnline();
    }
    expect(await cluster.run({ command: 'true', resources: { nodes: 2 } }), what).toMatchObject({
      state: 'succeeded',
      attempts: { length: 1 },
    });
    for (const title of titles) cluster.setClock(title, 0);
    await waitFor(`a step of ${what} is over`, async () => (await api.getCluster()).clockProblem === '');
  }

  expect(await api.getJob(running)).toMatchObject({ state: 'running', attempts: { length: 1 } });
  expect(await api.getJob(ended.id)).toMatchObject({ state: 'succeeded' });
  expect((await cluster.muster(['logs', ended.id])).stdout).toContain('kept');
  const kinds = new Set<string>();
  for await (const { kind } of api.watchEvents({ sinceSeq: firstSeq, follow: false })) kinds.add(kind);
  for (const kind of ['retention.removed', 'token.expired', 'trigger.fired', 'node.fenced', 'job.failed'])
    expect([...kinds]).not.toContain(kind);
  const { endedAtMs } = await api.getJob(ended.id);
  expect(Math.abs(Date.now() - (endedAtMs ?? 0))).toBeLessThan(3_600_000);
});
