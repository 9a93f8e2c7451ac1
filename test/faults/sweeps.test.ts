/**
 * kill -9 of the coordinator during a sweep: no trial runs twice, no result is lost, and the best is the one of the same sweep without
 * kills. With MUSTER_TEST_TRIALS=full there are 30 kills.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, onTestFailed, test } from 'vitest';
import { seededChance } from '../support/chance.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

const kills = trialsOf(30, 3);

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ gpus: 1, coordinatorFlags: ['--heartbeat', '5s', '--lease', '2m'] });
});

/**
 * Runs a sweep undisturbed, and again over kills at moments of any of its jobs.
 * @param fileOf the sweep file; what a trial becomes has to follow from the trials before it
 * @returns the trials of the second one
 */
async function overKills(fileOf: (name: string) => object) {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const start = async (name: string) => {
    const file = join(cluster.workDir, `${name}.json`);
    writeFileSync(file, JSON.stringify({ name, ...fileOf(name) }));
    return (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  };
  const done = (id: string) =>
    waitFor(`${id} is done`, async () => (await cluster.api.getSweep(id)).state === 'done', {
      timeoutMs: 600_000,
    });
  const jobsOf = async (id: string) =>
    (await cluster.api.listTrials(id)).flatMap(({ earlierJobs, jobId }) => [...earlierJobs, jobId]);
  const found = async (id: string) => {
    const trials = await cluster.api.listTrials(id);
    return trials.map(({ number, state, params, value, step, earlierJobs }) => {
      return { number, state, params, value, step, jobs: earlierJobs.length + 1 };
    });
  };
  const undisturbed = await start(`undisturbed-${kills}`);
  await done(undisturbed);

  const disturbed = await start(`disturbed-${kills}`);
  for (let round = 0; round < kills; round += 1) {
    // A moment of any job: while it is planned, starts, runs, saves or ends.
    await waitFor(`job ${round + 1} is there`, async () => (await jobsOf(disturbed)).length > round + 1);
    await delay(chance.integer(0, 500));
    await cluster.coordinator.kill();
    await cluster.coordinator.start();
  }
  await done(disturbed);

  expect(await found(disturbed)).toEqual(await found(undisturbed));
  const best = async (id: string) => (await cluster.api.getSweep(id)).best;
  expect((await best(disturbed))?.number).toBe((await best(undisturbed))?.number);
  const { jobs } = await cluster.api.listJobs({ label: `muster.sweep=${disturbed}`, limit: 1_000 });
  const ids = (await jobsOf(disturbed)).sort();
  expect(jobs.map(({ id }) => id).sort()).toEqual(ids);
  const attempts = (await cluster.events()).filter(
    ({ kind, subject }) => kind === 'attempt.allocated' && ids.includes(subject),
  );
  expect(attempts.map(({ subject }) => subject).sort()).toEqual(ids);
  return found(disturbed);
}

test(`a sweep finds the same over ${kills} kills of the coordinator`, async () => {
  const range = { type: 'float', min: 0, max: 1 };
  // Its loss follows from the parameters alone.
  const command = [
    'awk',
    'BEGIN { x = {x}; y = {y}; printf "iter 1: loss %.6f, time 440.71ms, mfu 48.31%%\\n", (x - 0.3) ^ 2 + (y - 0.7) ^ 2 + 0.01 }',
  ];
  await overKills(() => ({
    // Ten are random; the others follow from what came before, so that a result that is lost changes them.
    trials: 12 + kills,
    // What TPE suggests follows from the trials that have ended.
    parallel: 1,
    seed: 7,
    objective: { metric: 'train_loss' },
    parameters: { x: range, y: range },
    job: { command },
  }));
});

test(`trials are paused and resumed the same over ${kills} kills of the coordinator`, async () => {
  // The best comes fifth. The others get worse, so that each is paused, and resumed if enough worse ones come after it.
  const losses = Array.from({ length: 2 + kills }, (_, number) => (number === 4 ? 10 : 20 + number) / 100);
  // ASHA keeps the better half of those that have come to the rung. The others have nothing to do there until they are stopped.
  const isKept = (number: number) => {
    const better = losses.slice(0, number).filter((loss) => loss < (losses[number] ?? 0)).length;
    return better < Math.max(1, Math.floor((number + 1) / 2));
  };
  const stopped = losses.filter((_, number) => !isKept(number)).join('|');
  const program = [
    'line() { echo "iter $1: loss {loss}, time 440.71ms, mfu 48.31%"; }',
    `save() { echo '{"step": 2}' > "$MUSTER_CHECKPOINT_DIR/step-2.json"; exit 0; }`,
    'trap save TERM',
    `if [ -z "$MUSTER_RESUME_FROM" ]; then line 1; line 2; case {loss} in ${stopped}) while :; do sleep 0.1; done;; esac; fi`,
    'line 3',
  ].join('\n');
  const trials = await overKills((name) => ({
    sampler: 'grid',
    parallel: 1,
    objective: { metric: 'train_loss' },
    early_stopping: { rule: 'asha', min_steps: 2, reduction: 2 },
    parameters: { loss: losses },
    job: { command: program, checkpoint: { dir: join(cluster.workDir, name, '{trial}') } },
  }));
  expect(trials.filter(({ jobs }) => jobs > 1).length).toBeGreaterThan(0);
  expect(trials.filter(({ state }) => state === 'pruned').length).toBeGreaterThan(0);
});
