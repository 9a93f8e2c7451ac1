import { expect, test } from 'vitest';
import { startTestCoordinator } from '../coordinatorFixture.ts';
import type { Job } from '../model.ts';
import { aJob, anAttempt, aReport, aSpec, aTask, jobIdOf } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';

/** A job of two tasks that may run for ten seconds. */
async function aRunningJob(fields: Partial<Job> = {}) {
  const memory = new Memory('test');
  const tasks = [0, 1].map((rank) => aTask(rank, { state: 'running' }));
  const attempt = anAttempt(2, { state: 'running', tasks });
  const spec = aSpec({ max_runtime: '10s' });
  memory.jobs.set(
    jobIdOf(1),
    aJob(1, { spec, lastAttempt: 2, state: { kind: 'running', attempt }, ...fields }),
  );
  memory.attempts.set(jobIdOf(1), new Map([[2, attempt]]));
  const { clock, timeLimits, state, loop, close } = await startTestCoordinator({ memory });
  return {
    clock,
    close,
    note(nodeRank: number, runningForMs: number | null, attemptNumber = 2) {
      const task = { jobId: jobIdOf(1), attempt: attemptNumber, nodeRank };
      timeLimits.note(aReport(task, { runningForMs }));
    },
    /** What the job is after a pass. */
    async pass() {
      await Promise.all(timeLimits.run(state, loop));
      return state.jobs.get(jobIdOf(1))?.state.kind;
    },
  };
}

test('an attempt is stopped when its longest-running task has run for the limit, by the node’s own account', async () => {
  const { note, pass, close } = await aRunningJob();
  note(0, 9_999);
  note(1, 1);
  expect(await pass()).toBe('running');
  note(1, 10_000);
  expect(await pass()).toBe('stopping');
  expect(await pass(), 'and once').toBe('stopping');
  await close();
});

test('between reports our clock counts on, also while the node is silent', async () => {
  const { note, pass, clock, close } = await aRunningJob();
  note(0, 4_000);
  clock.nowMs += 5_999;
  note(1, 1_000);
  expect(await pass()).toBe('running');
  clock.nowMs += 1;
  expect(await pass()).toBe('stopping');
  await close();
});

test('what the limit was extended by is added to it', async () => {
  const { note, pass, clock, close } = await aRunningJob({ extraRuntimeMs: 5_000 });
  note(0, 14_999);
  expect(await pass()).toBe('running');
  clock.nowMs += 1;
  expect(await pass()).toBe('stopping');
  await close();
});

test('what never ran and what belongs to another attempt does not count', async () => {
  const { note, pass, clock, close } = await aRunningJob();
  note(0, null);
  note(0, 99_999, 1);
  clock.nowMs += 60_000;
  expect(await pass()).toBe('running');
  await close();
});
