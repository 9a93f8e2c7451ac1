import { expect, test } from 'vitest';
import { aCheckpoint, aJob, aSpec, jobIdOf, someMs } from '../modelFixture.ts';
import type { JobEvaluations, StoredEvaluation } from '../store/evaluations.ts';
import { keptCheckpointsOf, withEvaluations } from './keptCheckpoints.ts';

const spec = aSpec({
  command: ['train'],
  evaluate: { command: ['eval'], every: 1, metric: { name: 'eval_loss' } },
});
const checkpoints = [10, 20, 30].map((step) => aCheckpoint(step, { savedAtMs: someMs + step }));

function evaluation(number: number, fields: Partial<StoredEvaluation>): StoredEvaluation {
  const { name: checkpoint = '', version = '', step = null } = checkpoints[number] ?? {};
  const none = { jobId: null, metrics: {}, cause: null, message: null, dueAtMs: someMs, endedAtMs: null };
  return { number, checkpoint, version, step, state: 'running', ...none, ...fields };
}

function byJob(evaluations: readonly StoredEvaluation[]) {
  const of: JobEvaluations = { job: jobIdOf(1), seen: 3, bestValue: null, next: 3, evaluations };
  return { byJob: new Map([[of.job, of]]) };
}

const namesOf = (kept: ReturnType<typeof keptCheckpointsOf>) => kept?.held.map(({ name }) => name);

test('what waits or runs is kept, and the best by the metric, also in a job that continues there', () => {
  const job = aJob(1, { spec, checkpoints });
  const known = byJob([
    evaluation(0, { state: 'complete', metrics: { eval_loss: 1 } }),
    evaluation(1, { state: 'complete', metrics: { eval_loss: 2 } }),
    evaluation(2, { state: 'waiting' }),
  ]);
  const [first, , third] = checkpoints.map(({ name }) => name);
  expect(namesOf(keptCheckpointsOf(job, known))).toEqual([first, third]);
  expect(keptCheckpointsOf(job, known)?.decidedSavedAtMs).toBe(someMs + 30);
  const plain = aSpec({ command: ['train'] });
  const next = aJob(2, { spec: plain, checkpoints, checkpointJobId: jobIdOf(1), requeuedFrom: jobIdOf(1) });
  expect(namesOf(keptCheckpointsOf(next, known))).toEqual([third]);
  expect(keptCheckpointsOf(aJob(3, { spec: plain }), known)).toBeNull();
  expect(keptCheckpointsOf(aJob(3, { spec }), known)).toEqual({ held: [], decidedSavedAtMs: 0 });
});

test('what has been decided last is the newest of the job, also after a clock was set back', () => {
  const setBack = aCheckpoint(40, { savedAtMs: someMs - 1_000 });
  const job = aJob(1, { spec, checkpoints: [...checkpoints, setBack] });
  expect(keptCheckpointsOf(job, byJob([]))?.decidedSavedAtMs).toBe(someMs - 1_000);
});

test('rows of checkpoints have what their evaluations have found out', () => {
  const { byJob: known } = byJob([
    evaluation(0, { state: 'complete', metrics: { eval_loss: 2 } }),
    evaluation(1, { state: 'complete', metrics: { eval_loss: 1 } }),
    evaluation(2, { state: 'failed', cause: 'no_metric', version: 'of another save' }),
  ]);
  const shown = withEvaluations({ checkpoints, spec }, known.get(jobIdOf(1)));
  expect(shown.map(({ evaluation: found }) => found && [found.metrics['eval_loss'], found.best])).toEqual([
    [2, false],
    [1, true],
    undefined,
  ]);
});
