/** When the coordinator's clock is set, nothing that has not ended becomes longer or shorter. */
import { expect, test } from 'vitest';
import { aJob, anAttempt, anExit, aTask, jobIdOf, someMs } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { moveMoments } from './moveMoments.ts';
import { ClusterState, Draft } from './state.ts';

const dayMs = 86_400_000;

const running = anAttempt(1, {
  state: 'running',
  allocatedAtMs: someMs,
  runningAtMs: someMs + 1_000,
  savedAtMs: someMs + 90_000,
  tasks: [
    { ...aTask(0, { state: 'running' }), startedAtMs: someMs + 1_000 },
    { ...aTask(1, { state: 'ended', exit: anExit({ finishedAtMs: someMs + 95_000 }) }), failedAtMs: null },
  ],
});

async function movedBy(byMs: number, fromMs: number | null) {
  const memory = new Memory('test');
  const state = new ClusterState(await new MemoryStore(memory).load());
  state.noteJob(aJob(1, { state: { kind: 'running', attempt: running } }));
  const waiting = {
    kind: 'queued',
    backoffMs: 0,
    lastCause: null,
    sinceMs: someMs,
    breakerOpen: false,
  } as const;
  state.noteJob(aJob(2, { state: waiting }));
  const draft = new Draft(state);
  moveMoments(draft, { byMs, fromMs });
  const [one, two] = [draft.job(jobIdOf(1)), draft.job(jobIdOf(2))];
  if (one?.state.kind !== 'running' || two?.state.kind !== 'queued') throw new Error('both are as they were');
  return { attempt: one.state.attempt, sinceMs: two.state.sinceMs };
}

test.each([dayMs, -400 * dayMs])('all moments move by %d ms', async (byMs) => {
  const { attempt, sinceMs } = await movedBy(byMs, null);
  expect(sinceMs).toBe(someMs + byMs);
  expect(attempt).toMatchObject({
    allocatedAtMs: someMs + byMs,
    runningAtMs: someMs + 1_000 + byMs,
    savedAtMs: someMs + 90_000 + byMs,
    stoppingAtMs: null,
    tasks: [{ startedAtMs: someMs + 1_000 + byMs }, { exit: { finishedAtMs: someMs + 95_000 + byMs } }],
  });
});

test('moments from before a gap stay, because the gap is time that passed', async () => {
  const { attempt, sinceMs } = await movedBy(dayMs, someMs + 60_000);
  expect(sinceMs).toBe(someMs);
  expect(attempt).toMatchObject({ runningAtMs: someMs + 1_000, savedAtMs: someMs + 90_000 + dayMs });
});
