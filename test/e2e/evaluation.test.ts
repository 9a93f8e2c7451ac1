/** Checkpoints that are evaluated while their job runs, with real processes. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Checkpoint } from '@muster/common/checkpoints';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});

test('every second checkpoint is evaluated once over a kill of the coordinator, and is kept until then', async () => {
  const dir = join(cluster.workDir, 'evaluated');
  const [gate = '', evaluationGate = ''] = ['gate', 'evaluation'].map((name) => join(cluster.workDir, name));
  const wait = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;
  const save =
    'echo "iter $step: loss 0.5, time 440.71ms, mfu 48.31%"; printf \'{"step": %s}\' $step > $MUSTER_CHECKPOINT_DIR/step_$step.json';
  const result = 'step $MUSTER_CHECKPOINT_STEP: train loss 0.5000, val loss 0.$MUSTER_CHECKPOINT_STEP';
  const job = {
    name: 'train',
    command: `for step in 1 2 3 4 5; do ${save}; ${wait(`${gate}-$step`)}; done`,
    checkpoint: { dir, keep_last: 1 },
    priority: 60,
    evaluate: {
      command: `${wait(evaluationGate)}; cat {checkpoint} "$MUSTER_CHECKPOINT" && echo "${result}"`,
      every: 2,
      metric: { name: 'eval_loss' as const },
    },
  };
  const id = await cluster.submit(job);
  const row = async (step: number) => {
    const view = await cluster.api.getJob(id).catch(() => null);
    return view?.checkpoints.find((each) => each.step === step);
  };
  const isVerified = (step: number) =>
    waitFor(`checkpoint ${step} is verified`, async () => (await row(step))?.verdict === 'verified');
  const isEvaluated = (step: number) =>
    waitFor(
      `checkpoint ${step} is evaluated`,
      async () => (await row(step))?.evaluation?.state === 'running',
    );
  const goOnAfter = (step: number) => writeFileSync(`${gate}-${step}`, '');

  await isVerified(1);
  goOnAfter(1);
  await isEvaluated(2);
  await cluster.coordinator.kill();
  goOnAfter(2);
  await cluster.coordinator.start();
  await isVerified(3);
  goOnAfter(3);
  await isEvaluated(4);
  goOnAfter(4);
  await isVerified(5);
  // Keep rules leave the newest, and these two are needed.
  await waitFor('checkpoint 3 is deleted', async () => !existsSync(join(dir, 'step_3.json')));
  expect([2, 4].map((step) => existsSync(join(dir, `step_${step}.json`)))).toEqual([true, true]);
  writeFileSync(evaluationGate, '');
  await waitFor('both evaluations have ended', async () => {
    const states = [await row(2), await row(4)].map((each) => each?.evaluation?.state);
    return states.every((state) => state === 'complete');
  });
  goOnAfter(5);
  await waitFor('it ends', async () => (await cluster.api.getJob(id)).state === 'succeeded');

  const shown = JSON.parse(
    (await cluster.muster(['checkpoints', id, '-o', 'json'])).stdout,
  ) as readonly Checkpoint[];
  const found = shown.filter(({ evaluation }) => evaluation !== undefined);
  expect(
    found.map(({ step, evaluation }) => [step, evaluation?.metrics['eval_loss'], evaluation?.best]),
  ).toEqual([
    [2, 0.2, true],
    [4, 0.4, false],
  ]);
  expect((await cluster.muster(['checkpoints', id])).stdout).toContain('eval_loss 0.2');
  const { jobs } = await cluster.api.listJobs({ label: `muster.evaluates=${id}` });
  expect(jobs).toHaveLength(2);
  expect(new Set(jobs.map((each) => each.id))).toEqual(
    new Set(found.map(({ evaluation }) => evaluation?.jobId)),
  );
  expect(jobs.map(({ state, user }) => [state, user])).toEqual(
    jobs.map(() => ['succeeded', expect.any(String)]),
  );
});
