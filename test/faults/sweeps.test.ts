/**
 * kill -9 of the coordinator during a sweep: no trial runs twice, no result is lost, and the best is the one of the same sweep without
 * kills. With MUSTER_TEST_TRIALS=full there are 30 kills.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFailed, test } from 'vitest';
import { seededChance } from '../support/chance.ts';
import { startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

const kills = trialsOf(30, 3);
/** Ten are random; the others follow from what came before, so that a result that is lost changes them. */
const trialCount = 12 + kills;

/** Its loss follows from the parameters alone. */
const command = [
  'awk',
  'BEGIN { x = {x}; y = {y}; printf "iter 1: loss %.6f, time 440.71ms, mfu 48.31%%\\n", (x - 0.3) ^ 2 + (y - 0.7) ^ 2 + 0.01 }',
];

test(`a sweep finds the same over ${kills} kills of the coordinator`, async () => {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const cluster = await startCluster({ gpus: 1, coordinatorFlags: ['--heartbeat', '5s', '--lease', '2m'] });
  const start = async (name: string) => {
    const file = join(cluster.workDir, `${name}.json`);
    const range = { type: 'float', min: 0, max: 1 };
    const sweepFile = {
      name,
      trials: trialCount,
      // What TPE suggests follows from the trials that have ended.
      parallel: 1,
      seed: 7,
      objective: { metric: 'train_loss' },
      parameters: { x: range, y: range },
      job: { command },
    };
    writeFileSync(file, JSON.stringify(sweepFile));
    return (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  };
  const done = (id: string) =>
    waitFor(`${id} is done`, async () => (await cluster.api.getSweep(id)).state === 'done', {
      timeoutMs: 600_000,
    });
  const found = async (id: string) => {
    const trials = await cluster.api.listTrials(id);
    return trials.map(({ number, state, params, value }) => ({ number, state, params, value }));
  };
  const undisturbed = await start('undisturbed');
  await done(undisturbed);

  const disturbed = await start('disturbed');
  for (let round = 0; round < kills; round += 1) {
    // A moment of any trial: while it is planned, starts, runs or ends.
    await waitFor(
      `trial ${round + 1} is there`,
      async () => (await cluster.api.listTrials(disturbed)).length > round + 1,
    );
    await delay(chance.integer(0, 500));
    await cluster.coordinator.kill();
    await cluster.coordinator.start();
  }
  await done(disturbed);

  expect(await found(disturbed)).toEqual(await found(undisturbed));
  const best = async (id: string) => (await cluster.api.getSweep(id)).best;
  expect((await best(disturbed))?.number).toBe((await best(undisturbed))?.number);
  const { jobs } = await cluster.api.listJobs({ label: `muster.sweep=${disturbed}`, limit: 1_000 });
  const ids = (await cluster.api.listTrials(disturbed)).map(({ jobId }) => jobId).sort();
  expect(jobs.map(({ id }) => id).sort()).toEqual(ids);
  const attempts = (await cluster.events()).filter(
    ({ kind, subject }) => kind === 'attempt.allocated' && ids.includes(subject),
  );
  expect(attempts.map(({ subject }) => subject).sort()).toEqual(ids);
});
