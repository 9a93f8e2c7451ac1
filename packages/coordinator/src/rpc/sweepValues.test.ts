/** When trials of sweeps have values, by the API, with trials that are begun and ended by hand. */
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aNode } from '../modelFixture.ts';
import { startJob } from './jobFixture.ts';
import { sweepActions } from './sweepFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const { create, trialsOf, finish, print } = sweepActions(() => coordinator);

test('a trial has no value before its last row is here, however late that is', async () => {
  const sweep = await create({ parallel: 1 });
  const [trial] = await trialsOf(sweep.id);
  const jobId = trial?.jobId as JobId;
  await startJob(coordinator, jobId);
  await print(jobId, 10, 1.4);
  await finish(jobId, 0, { rowsEnd: 20 });
  coordinator.clock.nowMs += 30 * 24 * 3_600_000;
  const awaits =
    'the last metrics of attempt 1 from node-1, which does not respond; without it: muster node remove node-1';
  expect(await trialsOf(sweep.id)).toMatchObject([{ state: 'running', value: null, awaits }]);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ awaits: `trial 0: ${awaits}` });
  await print(jobId, 20, 1);
  expect(await trialsOf(sweep.id)).toMatchObject([
    { state: 'complete', value: 1, step: 20, awaits: null, lost: null },
    { number: 1 },
  ]);
});

test.each([
  { acceptIncomplete: false, state: 'incomplete', best: null },
  { acceptIncomplete: true, state: 'complete', best: { number: 0, value: 1.4 } },
])(
  'metrics that can no longer come leave the value of those that did, which counts as best only if its owner says so: $acceptIncomplete',
  async ({ acceptIncomplete, state, best }) => {
    const sweep = await create({ trials: 1, accept_incomplete: acceptIncomplete });
    const [trial] = await trialsOf(sweep.id);
    const jobId = trial?.jobId as JobId;
    await startJob(coordinator, jobId);
    await print(jobId, 10, 1.4);
    await finish(jobId, 0, { rowsEnd: 20 });
    await coordinator.loop.run(aCaller, (draft) => draft.removeNode(aNode('node-1').name));
    const lost = 'metrics of attempt 1 are lost: node-1 was removed before it had sent them';
    expect(await trialsOf(sweep.id)).toMatchObject([{ state, value: 1.4, step: 10, cause: null, lost }]);
    const counts = { complete: acceptIncomplete ? 1 : 0, incomplete: acceptIncomplete ? 0 : 1 };
    const shown = await coordinator.api.getSweep(sweep.id);
    expect(shown).toMatchObject({ state: 'done', ...counts, awaits: null });
    expect(shown.best).toEqual(best === null ? null : expect.objectContaining(best));
    const events = await coordinator.store.readEvents(0, 100, null);
    const ended = events.find(({ kind }) => kind === 'sweep.trial_ended');
    expect(ended?.data).toMatchObject({ state, value: 1.4, lost });
  },
);

test('a trial whose metric is not among those that arrived has not failed by itself', async () => {
  const sweep = await create({ trials: 1, max_failures: 1 });
  const [trial] = await trialsOf(sweep.id);
  const jobId = trial?.jobId as JobId;
  await startJob(coordinator, jobId);
  await finish(jobId, 0, { rowsEnd: 20 });
  await coordinator.loop.run(aCaller, (draft) => draft.removeNode(aNode('node-1').name));
  expect(await trialsOf(sweep.id)).toMatchObject([
    { state: 'incomplete', value: null, cause: 'metrics_lost' },
  ]);
  expect(await coordinator.api.getSweep(sweep.id)).toMatchObject({ state: 'done', incomplete: 1 });
});

test('a mark behind the last row ends the wait after a restart of the coordinator, too', async () => {
  const sweep = await create({ trials: 1 });
  const [trial] = await trialsOf(sweep.id);
  const jobId = trial?.jobId as JobId;
  await startJob(coordinator, jobId);
  await print(jobId, 10, 1.4);
  await finish(jobId, 0);
  expect(await trialsOf(sweep.id)).toMatchObject([{ state: 'running' }]);
  await coordinator.rowKeeping.rows.markEnd({ jobId, attempt: 1, nodeRank: 0 }, 'complete');
  expect(await trialsOf(sweep.id)).toMatchObject([{ state: 'complete', value: 1.4 }]);
});
