import { expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import type { Job } from '../model.ts';
import { aCaller, aReport, jobIdOf, queuedState } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { Story } from '../storyFixture.ts';

const file = { resources: { nodes: 2 }, prepare_timeout: '60s', rendezvous_timeout: '10s' };
const gang = () => new Story(file).allocated();

/** A coordinator that finds this job in its store. */
async function withJob({ job, attempt }: Story) {
  const memory = new Memory('test');
  memory.jobs.set(job.id, job);
  if (attempt !== null) memory.attempts.set(job.id, new Map([[attempt.number, attempt]]));
  const coordinator = await startTestCoordinator({ memory });
  return { coordinator, close: () => coordinator.close() };
}

/** What the job is after a pass. */
async function pass({ startDeadlines, state, loop }: TestCoordinator): Promise<Job | undefined> {
  await Promise.all(startDeadlines.run(state, loop));
  return state.jobs.get(jobIdOf(1));
}

test('a gang that is not prepared in time is queued again, and the event names what each node was doing', async () => {
  const { coordinator, close } = await withJob(gang().prepared(0));
  const task = { jobId: jobIdOf(1), attempt: 1, nodeRank: 1 };
  coordinator.taskStatus.record(aReport(task, { state: 'assigned', doing: 'pulls image train:2' }));
  expect((await pass(coordinator))?.state.kind).toBe('starting');
  coordinator.clock.nowMs += 59_999;
  expect((await pass(coordinator))?.state.kind).toBe('starting');
  coordinator.clock.nowMs += 1;
  expect(await pass(coordinator)).toMatchObject({
    state: {
      kind: 'queued',
      lastCause: {
        kind: 'rendezvous_timeout',
        message: 'not ready within the prepare_timeout of 60 s: node-2 (pulls image train:2)',
      },
    },
    excludedNodes: [{ node: 'node-2' }],
  });
  expect((await pass(coordinator))?.failedStarts, 'and once').toBe(1);
  await close();
});

test('once released, the tasks have their own time to run', async () => {
  const { coordinator, close } = await withJob(gang().allPrepared().checked(0));
  await pass(coordinator);
  coordinator.clock.nowMs += 59_999;
  const { job, attempt } = gang().allPrepared().checked(0).checked(1);
  await coordinator.loop.run(aCaller, (draft) => {
    draft.putJob(job);
    if (attempt !== null) draft.putAttempt(job.id, attempt);
  });
  await pass(coordinator);
  coordinator.clock.nowMs += 9_999;
  expect((await pass(coordinator))?.state.kind).toBe('starting');
  coordinator.clock.nowMs += 1;
  expect(await pass(coordinator)).toMatchObject({
    state: { kind: 'stopping', outcome: { cause: { kind: 'rendezvous_timeout' } } },
  });
  await close();
});

test('another attempt begins anew, and so does a coordinator', async () => {
  const story = gang();
  const { coordinator, close } = await withJob(story);
  await pass(coordinator);
  coordinator.clock.nowMs += 50_000;
  const second = new Story(file, { ...story.job, state: queuedState() });
  const { job, attempt } = second.allocated();
  await coordinator.loop.run(aCaller, (draft) => {
    draft.putJob(job);
    if (attempt !== null) draft.putAttempt(job.id, attempt);
  });
  await pass(coordinator);
  coordinator.clock.nowMs += 50_000;
  expect((await pass(coordinator))?.state.kind).toBe('starting');

  const restarted = await startTestCoordinator({ memory: coordinator.memory });
  restarted.clock.nowMs = coordinator.clock.nowMs;
  await pass(restarted);
  restarted.clock.nowMs += 59_999;
  expect((await pass(restarted))?.state.kind).toBe('starting');
  restarted.clock.nowMs += 1;
  expect((await pass(restarted))?.state.kind).toBe('queued');
  await restarted.close();
  await close();
});

test('what runs has no deadline to start', async () => {
  const { coordinator, close } = await withJob(new Story(file).allRunning());
  await pass(coordinator);
  coordinator.clock.nowMs += 3_600_000;
  expect((await pass(coordinator))?.state.kind).toBe('running');
  await close();
});
