/** Early stopping and budgets of sweeps by the API, with trials that are begun and ended by hand. */
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint } from '../modelFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { startJob } from './jobFixture.ts';
import { aSweepFile, sweepActions } from './sweepFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const file = aSweepFile;
const { create, trialsOf, finish, endTrial, print } = sweepActions(() => coordinator);

test('a trial that is worse than others at a rung saves and ends, and never counts as best', async () => {
  const sweep = await create({ trials: 2, early_stopping: { rule: 'asha', min_steps: 10, reduction: 2 } });
  const [first, second] = (await trialsOf(sweep.id)).map(({ jobId }) => jobId as JobId);
  if (first === undefined || second === undefined) throw new Error('two trials were expected');
  await startJob(coordinator, first);
  await startJob(coordinator, second);
  await print(first, 5, 0.8);
  await print(second, 10, 0.5);
  expect((await coordinator.api.getJob(first)).state).toBe('running');
  await print(first, 12, 0.75);
  expect((await coordinator.api.getJob(first)).state).toBe('stopping');
  // What it prints while it saves does not count.
  await print(first, 13, 0.1);
  await finish(first, 0);
  expect((await trialsOf(sweep.id))[0]).toMatchObject({
    state: 'pruned',
    value: 0.75,
    step: 12,
    cause: null,
  });
  await print(second, 20, 0.9);
  await coordinator.rowKeeping.ended({ jobId: second, attempt: 1, nodeRank: 0 }, 'complete');
  await finish(second, 0);
  await coordinator.sweeps.run();
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'done',
    pruned: 1,
    complete: 1,
    best: { number: 1, value: 0.9 },
  });
});

/** It has saved, and its rows have arrived. */
async function saveAndEnd(jobId: JobId, step: number): Promise<void> {
  const of = { attempt: 1, nodeRank: 0 } as const;
  const saved = {
    kind: 'checkpoint',
    ...of,
    checkpoint: aCheckpoint(step),
    shared: true,
    afterStop: true,
  } as const;
  await coordinator.loop.run(aCaller, (draft, nowMs) => applyJobEvent(draft, jobId, saved, nowMs));
  await coordinator.rowKeeping.ended({ jobId, attempt: 1, nodeRank: 0 }, 'complete');
  await finish(jobId, 0);
  await coordinator.sweeps.run();
}

async function startNewest(id: string, number: number): Promise<JobId> {
  const jobId = (await trialsOf(id))[number]?.jobId as JobId;
  await startJob(coordinator, jobId);
  await coordinator.sweeps.run();
  return jobId;
}

test('a trial with a checkpoint is paused, and is resumed from it once it is among the best', async () => {
  const sweep = await create({
    trials: 4,
    parallel: 1,
    early_stopping: { rule: 'asha', min_steps: 10, reduction: 2 },
    job: { ...file.job, checkpoint: { dir: '/checkpoints/{trial}' } },
  });
  const first = await startNewest(sweep.id, 0);
  await print(first, 10, 0.2);
  await saveAndEnd(first, 10);
  const second = await startNewest(sweep.id, 1);
  await print(second, 10, 0.5);
  expect((await coordinator.api.getJob(second)).state).toBe('stopping');
  await saveAndEnd(second, 12);
  expect((await trialsOf(sweep.id))[1]).toMatchObject({
    state: 'paused',
    value: 0.5,
    step: 10,
    earlierJobs: [],
  });
  // Of four trials it is among the better half.
  for (const number of [2, 3]) {
    const jobId = await startNewest(sweep.id, number);
    await print(jobId, 10, 0.7 + number / 10);
    await finish(jobId, 0);
    await coordinator.sweeps.run();
  }
  const resumed = (await trialsOf(sweep.id))[1];
  expect(resumed).toMatchObject({ state: 'running', value: null, earlierJobs: [second] });
  expect(await coordinator.api.getJob(resumed?.jobId ?? '')).toMatchObject({
    resumedFrom: { jobId: second, step: 12 },
    spec: { labels: { 'muster.trial': '1' }, params: resumed?.params },
  });
  const third = await startNewest(sweep.id, 1);
  // It is as bad as before at that rung, and runs to its end.
  await print(third, 13, 0.1);
  await saveAndEnd(third, 14);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'done',
    complete: 2,
    paused: 0,
    pruned: 2,
    best: { number: 1, value: 0.1, jobId: third },
  });
  const events = await coordinator.store.readEvents(0, 200, null);
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith('sweep.trial'));
  expect(kinds.filter((kind) => kind === 'sweep.trial_paused')).toHaveLength(1);
  expect(kinds.filter((kind) => kind === 'sweep.trial_resumed')).toHaveLength(1);
  expect(kinds.filter((kind) => kind === 'sweep.trial_ended')).toHaveLength(4);
});

test('rungs by epoch compare what lines with an epoch show', async () => {
  const sweep = await create({ trials: 2, early_stopping: { rule: 'asha', min_epochs: 0.5, reduction: 2 } });
  const [first, second] = (await trialsOf(sweep.id)).map(({ jobId }) => jobId as JobId);
  if (first === undefined || second === undefined) throw new Error('two trials were expected');
  for (const jobId of [first, second]) await startJob(coordinator, jobId);
  await print(first, 100, 0.9, 0.25);
  await print(second, 100, 0.5, 0.5);
  expect((await coordinator.api.getJob(first)).state).toBe('running');
  await print(first, 200, 0.8, 0.5);
  expect(await coordinator.api.getJob(first)).toMatchObject({ state: 'stopping' });
  await finish(first, 0);
  expect((await trialsOf(sweep.id))[0]).toMatchObject({ state: 'pruned', value: 0.8, step: null });
});

test('what is paused when a sweep ends is pruned', async () => {
  const sweep = await create({ trials: 2, parallel: 1, early_stopping: { rule: 'asha', min_steps: 10 } });
  const first = await startNewest(sweep.id, 0);
  await print(first, 10, 0.2);
  await saveAndEnd(first, 10);
  const second = await startNewest(sweep.id, 1);
  await print(second, 10, 0.5);
  await saveAndEnd(second, 10);
  expect((await trialsOf(sweep.id))[1]).toMatchObject({ state: 'pruned', value: 0.5, step: 10 });
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'done', complete: 1, pruned: 1 });
});

test('once its budget is used up no more trials are started, and it is done when what runs has ended', async () => {
  const sweep = await create({ trials: 9, parallel: 1, budget: { wall_clock: '1h' } });
  const [first] = await trialsOf(sweep.id);
  await endTrial(first?.jobId ?? '', 0.5);
  const [, second] = await trialsOf(sweep.id);
  await startJob(coordinator, second?.jobId as JobId);
  coordinator.clock.nowMs += 3_600_000;
  await coordinator.sweeps.run();
  const reason = 'the budget of 1h of wall clock is used up';
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'running', reason, running: 1 });
  await finish(second?.jobId as JobId, 1);
  expect(await trialsOf(sweep.id)).toHaveLength(2);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'done', reason, complete: 1 });
});

test('GPUs that trials have held count in the budget, those of ended jobs as they were booked', async () => {
  const sweep = await create({ trials: 9, parallel: 1, budget: { gpu_hours: 1 } });
  const [trial] = await trialsOf(sweep.id);
  const jobId = trial?.jobId as JobId;
  await startJob(coordinator, jobId, ['gpu-1', 'gpu-2']);
  coordinator.clock.nowMs += 1_800_000;
  await endTrial(jobId, 0.5);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({
    state: 'done',
    reason: 'the budget of 1 GPU-hours is used up: 1',
    complete: 1,
    use: { trials: 1, trialsLimit: 9, gpuHours: 1, gpuHoursLimit: 1, usd: 3.6, usdLimit: null },
  });
});

test('a sweep that has failed continues once it is extended, and counts failures from there', async () => {
  const job = { ...file.job, retry: { max_attempts: 1 } };
  const { id } = await create({ trials: 9, parallel: 1, max_failures: 2, job });
  const failNewest = async () => endTrial((await trialsOf(id)).at(-1)?.jobId ?? '', 0.5, 1);
  await failNewest();
  await failNewest();
  expect(await coordinator.api.getSweep(id)).toMatchObject({ state: 'failed', failed: 2 });
  await coordinator.api.extendSweep(id, 3, 'more');
  await failNewest();
  expect(await trialsOf(id)).toHaveLength(4);
  await failNewest();
  expect(await coordinator.api.getSweep(id)).toMatchObject({ state: 'failed', failed: 4, trials: 12 });
});

test('a sweep whose budget is used up cannot be extended', async () => {
  const { id } = await create({ trials: 9, parallel: 1, budget: { wall_clock: '1h' } });
  await trialsOf(id);
  await coordinator.api.extendSweep(id, 1, 'in-time');
  coordinator.clock.nowMs += 3_600_000;
  await expect(coordinator.api.extendSweep(id, 1, 'late')).rejects.toThrow(
    `${id} would start no trial: the budget of 1h of wall clock is used up`,
  );
  // What was carried out before is answered, whatever has been used since.
  expect(await coordinator.api.extendSweep(id, 1, 'in-time')).toMatchObject({ trials: 10 });
});

test('a sweep that cannot be looked at keeps no other from its trials', async () => {
  const broken = await create();
  const other = await create({ job: { ...file.job, retry: { max_attempts: 1 } } });
  await trialsOf(other.id);
  await coordinator.loop.run(aCaller, (draft) => {
    const stored = draft.sweeps.sweep(broken.id);
    if (stored !== undefined) draft.sweeps.put({ ...stored, spec: '{}' });
  });
  const [trial] = await coordinator.api.listTrials(other.id);
  await startJob(coordinator, trial?.jobId as JobId);
  await finish(trial?.jobId as JobId, 1);
  await expect(coordinator.sweeps.run()).rejects.toThrow(`a pass over ${broken.id} has failed: `);
  expect((await coordinator.api.listTrials(other.id))[0]).toMatchObject({ state: 'failed' });
});
