/** A sweep with real processes, over kills of the coordinator. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SweepView, TrialView } from '@muster/common/sweeps';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ gpus: 2 });
});

const losses = [0.4, 0.3, 0.6, 0.1, 0.2, 0.5];

test('each trial runs once over kills of the coordinator, and the best is known with its job file', async () => {
  const file = join(cluster.workDir, 'sweep.json');
  const sweepFile = {
    name: 'tune',
    sampler: 'grid',
    objective: { metric: 'train_loss', goal: 'min' },
    parameters: { loss: losses },
    job: {
      command:
        'for step in 1 2 3; do echo "iter $step: loss {loss}, time 440.71ms, mfu 48.31%"; sleep 0.1; done',
      resources: { gpus: 1 },
    },
  };
  writeFileSync(file, JSON.stringify(sweepFile));
  const { stdout } = await cluster.muster(['sweep', '-f', file]);
  const id = stdout.trim();
  const ended = async () => {
    const trials = await cluster.api.listTrials(id).catch((): readonly TrialView[] => []);
    return trials.filter(({ state }) => state !== 'running').length;
  };
  for (const count of [1, 3]) {
    await waitFor(`${count} trials have ended`, async () => (await ended()) >= count);
    await cluster.coordinator.kill();
    await cluster.coordinator.start();
  }
  await waitFor('the sweep is done', async () => (await cluster.api.getSweep(id)).state === 'done');

  const { trials } = JSON.parse((await cluster.muster(['sweep', 'trials', id, '-o', 'json'])).stdout) as {
    readonly trials: readonly TrialView[];
  };
  expect(trials.map(({ number, state, value }) => [number, state, value])).toEqual(
    losses.map((loss, number) => [number, 'complete', loss]),
  );
  const { jobs } = await cluster.api.listJobs({ label: `muster.sweep=${id}` });
  expect(jobs.map(({ id: jobId }) => jobId).sort()).toEqual(trials.map(({ jobId }) => jobId).sort());
  const shown = JSON.parse(
    (await cluster.muster(['sweep', 'show', 'tune', '-o', 'json'])).stdout,
  ) as SweepView;
  expect(shown).toMatchObject({ state: 'done', complete: 6, best: { number: 3, value: 0.1, step: 3 } });
  const best = join(cluster.workDir, 'best.json');
  writeFileSync(best, (await cluster.muster(['sweep', 'best', id, '--job-file'])).stdout);
  const again = await cluster.muster(['submit', '-f', best, '--follow']);
  expect(again.stdout).toContain('iter 3: loss 0.1,');
});

test('of two trials, the worse one is stopped early, and its GPU is released', async () => {
  const file = join(cluster.workDir, 'early.json');
  const gate = join(cluster.workDir, 'gate');
  const line = 'echo "iter $step: loss {loss}, time 440.71ms, mfu 48.31%"';
  const sweepFile = {
    name: 'early',
    sampler: 'grid',
    parallel: 2,
    objective: { metric: 'train_loss' },
    early_stopping: { rule: 'asha', min_steps: 3, reduction: 2 },
    parameters: { loss: [0.2, 0.9] },
    job: {
      command: `step=0; until [ -e ${gate} ]; do step=$((step + 1)); ${line}; sleep 0.1; done`,
      resources: { gpus: 1 },
    },
  };
  writeFileSync(file, JSON.stringify(sweepFile));
  const id = (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  await waitFor('a trial is pruned', async () => (await cluster.api.getSweep(id)).pruned === 1);
  const [good, bad] = await cluster.api.listTrials(id);
  expect([good?.state, bad?.state, bad?.value]).toEqual(['running', 'pruned', 0.9]);
  const job = await cluster.api.getJob(bad?.jobId ?? '');
  expect(job.cause?.message).toContain('was stopped early at step');
  writeFileSync(gate, '');
  await waitFor('the sweep is done', async () => (await cluster.api.getSweep(id)).state === 'done');
  expect(await cluster.api.getSweep(id)).toMatchObject({
    complete: 1,
    pruned: 1,
    best: { number: 0, value: 0.2 },
  });
});

test('a paused trial frees its GPU once it has saved, and continues from there when it is among the best', async () => {
  const file = join(cluster.workDir, 'paused.json');
  const gate = join(cluster.workDir, 'paused-gate');
  const program = [
    'step=0; case "$MUSTER_RESUME_FROM" in ?*) step=3;; esac',
    `save() { echo '{"step": 3}' > "$MUSTER_CHECKPOINT_DIR/step-3.json"; exit 0; }`,
    'trap save TERM',
    'line() { step=$((step + 1)); echo "iter $step: loss {loss}, time 440.71ms, mfu 48.31%"; }',
    `if [ $step = 0 ]; then line; line; line; until [ -e ${gate} ]; do sleep 0.1; done; fi`,
    'line; line',
  ].join('\n');
  const sweepFile = {
    name: 'paused',
    sampler: 'grid',
    parallel: 2,
    objective: { metric: 'train_loss' },
    early_stopping: { rule: 'asha', min_steps: 3, reduction: 2 },
    parameters: { loss: [0.2, 0.5, 0.9, 0.95] },
    job: {
      command: program,
      resources: { gpus: 1 },
      checkpoint: { dir: join(cluster.workDir, 'paused', '{trial}') },
    },
  };
  writeFileSync(file, JSON.stringify(sweepFile));
  const id = (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  const trials = () => cluster.api.listTrials(id);
  await waitFor('one trial runs, and two are paused', async () => {
    const { running, complete, paused } = await cluster.api.getSweep(id);
    return running === 1 && complete === 1 && paused === 2;
  });
  expect((await trials()).map(({ state }) => state)).toEqual(['running', 'complete', 'paused', 'paused']);
  writeFileSync(gate, '');
  await waitFor('the sweep is done', async () => (await cluster.api.getSweep(id)).state === 'done');

  const [, second, third] = await trials();
  expect(second).toMatchObject({ state: 'complete', value: 0.5, step: 5 });
  const [before = ''] = second?.earlierJobs ?? [];
  const resumed = await cluster.api.getJob(second?.jobId ?? '');
  expect(resumed.resumedFrom).toMatchObject({ jobId: before, step: 3 });
  expect(await cluster.output(resumed.id)).toContain('iter 4: loss 0.5,');
  expect(await cluster.output(resumed.id)).not.toContain('iter 3:');
  expect(await cluster.api.getSweep(id)).toMatchObject({ complete: 2, pruned: 2, paused: 0 });
  // The GPU of the first that was paused is the one that the third got.
  const events = await cluster.events();
  const at = (kind: string, subject: string) =>
    events.findIndex((event) => event.kind === kind && event.subject === subject);
  const order = [
    at('job.stopping', before),
    at('checkpoint.saved', before),
    at('attempt.ended', before),
    at('attempt.allocated', third?.jobId ?? ''),
  ];
  expect(order).not.toContain(-1);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

/** Runs out of memory, as PyTorch says it, where batch and layers are more than this GPU has room for. */
const training = [
  `if [ $(({batch_size} * {layers})) -gt 64 ]; then`,
  `  echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'; exit 1`,
  'fi',
  'echo "iter 1: loss 0.{layers}, time 440.71ms, mfu 48.31%"',
].join('\n');

/** Starts a sweep, and kills the coordinator as soon as a job of each of so many trials has failed once. */
async function sweepOverKills(sweepFile: { readonly name: string }, kills: number) {
  const file = join(cluster.workDir, `${sweepFile.name}.json`);
  writeFileSync(file, JSON.stringify(sweepFile));
  const id = (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  const failedOnce = async () => {
    const ours = (await cluster.api.listTrials(id)).map(({ jobId }) => jobId);
    const failures = (await cluster.events()).filter(({ kind }) => /^job\.(?:queued|failed)$/.test(kind));
    return new Set(failures.map(({ subject }) => subject).filter((subject) => ours.includes(subject)));
  };
  for (let kill = 1; kill <= kills; kill += 1) {
    await waitFor(`${kill} trials have failed once`, async () => (await failedOnce()).size >= kill);
    await cluster.coordinator.kill();
    await cluster.coordinator.start();
  }
  await waitFor('the sweep is done', async () => (await cluster.api.getSweep(id)).state === 'done');
  const trials = await cluster.api.listTrials(id);
  const jobs = await Promise.all(trials.map(({ jobId }) => cluster.api.getJob(jobId)));
  return trials.map(({ state, params, value, cause }, index) => {
    const causes = jobs[index]?.attempts.map((attempt) => attempt.cause?.kind ?? null);
    return { state, params, value, cause, causes };
  });
}

test('a trial that runs out of GPU memory is retried with a smaller batch, down to the least, over kills of the coordinator', async () => {
  const sweepFile = {
    name: 'shrink',
    sampler: 'grid',
    objective: { metric: 'train_loss' },
    parameters: { batch_size: [32], layers: [2, 4, 8] },
    job: { command: training, retry: { batch_min: 16, backoff: { initial: '500ms', max: '1s' } } },
  };
  const oom = 'cuda_oom';
  expect(await sweepOverKills(sweepFile, 2)).toEqual([
    { state: 'complete', params: { batch_size: 32, layers: 2 }, value: 0.2, cause: null, causes: [null] },
    {
      state: 'complete',
      params: { batch_size: 16, layers: 4 },
      value: 0.4,
      cause: null,
      causes: [oom, null],
    },
    {
      state: 'infeasible',
      params: { batch_size: 16, layers: 8 },
      value: null,
      cause: oom,
      causes: [oom, oom],
    },
  ]);
  const { trials } = JSON.parse(
    (await cluster.muster(['sweep', 'trials', 'shrink', '-o', 'json'])).stdout,
  ) as { readonly trials: readonly TrialView[] };
  const last = await cluster.api.getJob(trials[2]?.jobId ?? '');
  expect(last.cause?.message).toContain('a smaller batch would be below retry.batch_min, which is 16');
});

/** Agents that no service manager started limit memory by version 1 of control groups alone. */
const limitsMemory = / - cgroup \S+ \S*\bmemory\b/.test(readFileSync('/proc/self/mountinfo', 'utf8'));

test.runIf(limitsMemory)(
  'with on_oom: infeasible memory that is too small ends a trial at once',
  async () => {
    const sweepFile = {
      name: 'at-once',
      sampler: 'grid',
      on_oom: 'infeasible',
      objective: { metric: 'train_loss' },
      parameters: { batch_size: [32], layers: [2, 4, 8] },
      job: {
        // The third exceeds the memory of its job, and the kernel kills it.
        command: `if [ {layers} = 8 ]; then exec tail /dev/zero; fi; ${training}`,
        resources: { memory_mb: 64 },
      },
    };
    const trial = (layers: number) => ({ params: { batch_size: 32, layers }, value: null });
    expect(await sweepOverKills(sweepFile, 1)).toEqual([
      { ...trial(2), state: 'complete', value: 0.2, cause: null, causes: [null] },
      { ...trial(4), state: 'infeasible', cause: 'cuda_oom', causes: ['cuda_oom'] },
      { ...trial(8), state: 'infeasible', cause: 'host_oom', causes: ['host_oom'] },
    ]);
  },
);

test('the value of a trial is that of its last line, with more lines than are taken in seconds, over a kill of the coordinator', async () => {
  const file = join(cluster.workDir, 'fast.json');
  // A node sends 100,000 rows at once, and then 2,000 a second.
  const program = 'BEGIN { for (i = 1; i <= 130000; i++) print "iter " i ": loss " (i == 130000 ? 1 : 2) }';
  const sweepFile = {
    name: 'fast',
    sampler: 'grid',
    objective: { metric: 'train_loss', goal: 'min', of: 'last' },
    parameters: { lr: [0.1] },
    job: { command: ['awk', program], resources: { gpus: 1 } },
  };
  writeFileSync(file, JSON.stringify(sweepFile));
  const id = (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  const trial = async () => (await cluster.api.listTrials(id).catch((): readonly TrialView[] => []))[0];
  // A fast machine may have sent them all before anybody looked.
  await waitFor('its job has ended', async () => {
    const now = await trial();
    return now !== undefined && (now.awaits !== null || now.state !== 'running');
  });
  await cluster.coordinator.kill();
  await cluster.coordinator.start();
  await waitFor('the trial has ended', async () => {
    const now = await trial();
    return now !== undefined && now.state !== 'running';
  });
  expect(await trial()).toMatchObject({ state: 'complete', value: 1, step: 130_000, lost: null });
});
