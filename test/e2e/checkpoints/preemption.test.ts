/**
 * Jobs that are preempted: they save, stop, keep their queue position, and resume from what they saved. Nothing that was done
 * is done again.
 */
import { join } from 'node:path';
import type { JobView } from '@muster/common/views';
import { beforeAll, describe, expect, test } from 'vitest';
import { seededChance } from '../../support/chance.ts';
import { type Cluster, type Spec, startCluster } from '../../support/cluster.ts';
import { repositoryDir } from '../../support/command.ts';
import { patienceMs } from '../../support/patience.ts';
import { pythonWithTorch, tempDir } from '../../support/services.ts';
import { trialsOf } from '../../support/trials.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2, gpus: 2 });
});

const whole = { nodes: 2, gpus: 2 };
/** Takes every GPU for a moment. */
const urgent: Spec = { name: 'urgent', command: 'true', priority: 90, resources: whole };

function digest(output: string): string | undefined {
  return /weights (sha256:[0-9a-f]{64})$/m.exec(output)?.[1];
}

function stepIn(output: string, pattern: RegExp): number {
  const match = pattern.exec(output);
  if (match === null) throw new Error(`no ${pattern} in:\n${output}`);
  return Number(match[1]);
}

/** Waits until this attempt, the newest one, has done this many steps of its own. */
async function untilStep(jobId: string, attempt: number, steps: number): Promise<void> {
  await cluster.untilJob(
    jobId,
    `runs attempt ${attempt}`,
    ({ state, attempts }) => state === 'running' && attempts.length === attempt,
  );
  let seen = '';
  const deadline = AbortSignal.timeout(patienceMs);
  for await (const piece of cluster.api.readLogs({ jobId, attempt, nodeRank: 0, follow: true }, deadline)) {
    seen += Buffer.from(piece.data).toString('utf8');
    if ((seen.match(/^iter \d+: loss/gm) ?? []).length >= steps) return;
  }
  throw new Error(`attempt ${attempt} of ${jobId} has not done ${steps} steps:\n${seen}`);
}

/** Preempts a training job again and again, and checks that nothing is lost by that. */
async function preemptAgainAndAgain(spec: Spec, times: number): Promise<JobView> {
  const chance = seededChance();
  const jobId = await cluster.submit({ ...spec, preemptible: true, priority: 10, stop_grace: '60s' });
  for (let round = 1; round <= times; round += 1) {
    await untilStep(jobId, round, chance.integer(1, 25));
    const winner = await cluster.submit(urgent);
    expect(await cluster.untilEnded(winner)).toMatchObject({ state: 'succeeded' });
    const given = await cluster.api.getJob(jobId);
    expect(given.attempts[round - 1]?.cause).toMatchObject({
      kind: 'preempted',
      message: expect.stringContaining(winner),
    });
  }
  const job = await cluster.untilEnded(jobId);
  expect(job).toMatchObject({ state: 'succeeded', preemptions: times });
  for (let attempt = 1; attempt <= times; attempt += 1) {
    const before = await cluster.output(jobId, { attempt });
    const after = await cluster.output(jobId, { attempt: attempt + 1 });
    const stopped = stepIn(before, /^stopping after step (\d+), as asked$/m);
    const resumed = stepIn(after, /^.*, resuming from \S+ at step (\d+)$/m);
    expect(resumed, `attempt ${attempt + 1}, seed ${chance.seed}`).toBe(stopped);
  }
  return job;
}

const preemptions = trialsOf(20, 6);

/**
 * Attempts that will be preempted take `ms` for each step, and have far more steps to do than they can finish: on a busy
 * machine it takes seconds until a preemption reaches them. The last attempt does the rest at once.
 */
const stepMs = (preempted: number, ms: number) => `--step-ms=$((MUSTER_ATTEMPT <= ${preempted} ? ${ms} : 0))`;

describe('a job that saves when it is asked to stop', () => {
  test(`preempted at ${preemptions} random moments it does no step twice, and ends with the bits of an undisturbed run`, async () => {
    const program = join(repositoryDir, 'examples/train.mjs');
    const spec = (flags = ''): Spec => ({
      name: 'train',
      command: `exec ${process.execPath} ${program} --steps=${150 * preemptions} ${flags}`,
      resources: whole,
    });
    const undisturbed = await cluster.run(spec());
    const pace = stepMs(preemptions, 100);
    const job = await preemptAgainAndAgain(spec(`${pace} --log-every=1`), preemptions);
    expect(digest(await cluster.output(job.id, { attempt: preemptions + 1 }))).toBe(
      digest(await cluster.output(undisturbed.id)),
    );
    expect(digest(await cluster.output(undisturbed.id))).toMatch(/^sha256:/);
    const lost = job.ledger.find(({ kind }) => kind === 'preemption')?.gpuSeconds ?? 0;
    const productive = job.ledger.find(({ kind }) => kind === 'productive')?.gpuSeconds ?? 0;
    expect(productive).toBeGreaterThan(0);
    // What was done until it was asked to save is kept: it is as lost as its GPUs were idle.
    const askedAtMs = (await cluster.events(job.id)).filter(({ kind }) => kind === 'job.preempted');
    const stoppingMs = askedAtMs.map(({ timeMs }, index) => (job.attempts[index]?.endedAtMs ?? 0) - timeMs);
    const gpus = whole.nodes * whole.gpus;
    expect(lost).toBeLessThan((gpus * stoppingMs.reduce((sum, ms) => sum + ms, 0)) / 1_000 + 1);
  });

  test('the same with torchrun and PyTorch', async () => {
    const python = await pythonWithTorch();
    const times = trialsOf(20);
    const checkpoint = { dir: tempDir('torch').path };
    const program = join(repositoryDir, 'examples/train_torch.py');
    const spec = (flags = ''): Spec => ({
      name: 'torch',
      command: `exec ${python} -m torch.distributed.run ${program} --steps=${times * 100} ${flags}`,
      env: { PET_REDIRECTS: '9:1', PET_TEE: '9:1' },
      resources: { nodes: 2, gpus: 1 },
    });
    const undisturbed = await cluster.run(spec());
    const often = { ...spec(`${stepMs(times, 200)} --log-every=1 --save-every=20`), checkpoint };
    const job = await preemptAgainAndAgain(often, times);
    expect(digest(await cluster.output(job.id, { attempt: times + 1 }))).toBe(
      digest(await cluster.output(undisturbed.id)),
    );
  });
});

/** Saves when it is asked to stop, and then keeps running, as programs do that wait for their data loaders. */
const lingering = `
  const { renameSync, writeFileSync } = require('node:fs');
  const { join } = require('node:path');
  const dir = process.env.MUSTER_CHECKPOINT_DIR;
  const save = (step) => {
    const path = join(dir, 'step-' + step + '.json');
    writeFileSync(path + '.tmp', JSON.stringify({ step, weights: 'x'.repeat(100000) }));
    renameSync(path + '.tmp', path);
  };
  process.on('SIGTERM', () => {});
  process.on('SIGUSR1', () => { save(2); console.log('saved'); });
  save(1);
  console.log('resumed from ' + process.env.MUSTER_RESUME_FROM);
  setInterval(() => {}, 1000);`;

describe('a job that stays after it has saved', () => {
  const spec: Spec = {
    name: 'lingering',
    command: [process.execPath, '-e', lingering],
    resources: whole,
    preemptible: true,
    priority: 10,
    stop_signal: 'SIGUSR1',
    stop_grace: '10m',
  };

  test('frees its place as soon as the checkpoint is safe, without the rest of its grace', async ({
    annotate,
  }) => {
    const jobId = await cluster.submit(spec);
    await cluster.untilJob(jobId, 'has saved', ({ checkpoints }) => checkpoints.length === 1);
    const winner = await cluster.submit(urgent);
    expect(await cluster.untilEnded(winner)).toMatchObject({ state: 'succeeded' });
    const job = await cluster.untilJob(jobId, 'runs again', ({ attempts, state }) => {
      return attempts.length === 2 && state === 'running';
    });
    expect(job.checkpoints.map(({ step, verdict }) => [step, verdict])).toEqual([
      [1, 'verified'],
      [2, 'verified'],
    ]);
    expect(job.attempts[1]?.resume).toEqual({ name: 'step-2.json', step: 2 });
    await cluster.untilOutput(jobId, 'step-2.json');
    const events = await cluster.events(jobId);
    const saved = events.findLast(({ kind }) => kind === 'checkpoint.saved');
    const freed = events.findLast(({ kind }) => kind === 'attempt.ended');
    await annotate(
      `from the safe checkpoint to the free place: ${(freed?.timeMs ?? 0) - (saved?.timeMs ?? 0)} ms`,
    );
    await cluster.api.stopJobs([jobId]);
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'cancelled' });
  });

  test('says who took its place, and why', async () => {
    const jobId = await cluster.submit(spec);
    await cluster.untilJob(jobId, 'has saved', ({ checkpoints }) => checkpoints.length === 1);
    const holder = await cluster.submit({ ...urgent, command: 'while [ ! -e done ]; do sleep 0.1; done' });
    await cluster.until(holder, 'running');
    const waiting = await cluster.api.explainJob(jobId);
    expect([waiting.summary, ...waiting.details].join('\n')).toContain(holder);
    expect(waiting.job).toMatchObject({ state: 'queued', preemptions: 1, cause: { kind: 'preempted' } });
    await cluster.api.stopJobs([holder, jobId]);
    for (const id of [holder, jobId]) await cluster.untilEnded(id);
  });
});
