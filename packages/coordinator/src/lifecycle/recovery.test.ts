/** What follows from each cause. */
import { causeOf } from '@muster/common/cause';
import { type CauseKind, causeKinds, defaultRetryCauses, type Evidence } from '@muster/common/spec/causes';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { Cause, Resume } from '@muster/common/views';
import { describe, expect, it, test } from 'vitest';
import type { Attempt, FailureRecord, Job } from '../model.ts';
import { aCheckpoint, aJob, anAttempt, anExit, aSpec, aTask, someMs } from '../modelFixture.ts';
import { aStory, crash } from '../storyFixture.ts';
import { batchScaleMin, mayBePreempted, recoveryOf } from './recovery.ts';

const from100: Resume = { name: 'checkpoint-100', step: 100 };
const saved = [aCheckpoint(50), aCheckpoint(100)];

const aFailing = (retry: NonNullable<JobSpecFile['retry']> = {}, fields: Partial<Job> = {}) =>
  aJob(1, {
    spec: aSpec({
      resources: { nodes: 2, gpus: 2 },
      retry: { max_attempts: 10, on: [...defaultRetryCauses, 'exit_code'], ...retry },
    }),
    checkpoints: saved,
    lastAttempt: 2,
    ...fields,
  });

const anAttemptOfTwo = (fields: Partial<Attempt> = {}) =>
  anAttempt(2, {
    state: 'running',
    runningAtMs: someMs,
    resume: from100,
    tasks: [aTask(0), aTask(1)],
    ...fields,
  });

/** Of the end of rank 0 on node-1. */
const aCause = (kind: CauseKind, evidence: Partial<Evidence> = {}, fields: Partial<Cause> = {}): Cause => ({
  ...causeOf(kind, `rank 0 on node-1: ${kind}`, { nodeRank: 0, node: 'node-1' }),
  evidence: { line: 1, text: kind, rank: null, ...evidence },
  ...fields,
});

const aFailure = (cause: CauseKind, fields: Partial<FailureRecord> = {}): FailureRecord => ({
  cause,
  resume: 'checkpoint-100',
  node: null,
  ...fields,
});

const recover = (cause: Cause, job = aFailing(), attempt = anAttemptOfTwo()) =>
  recoveryOf(job, attempt, cause);
const byDefault: readonly string[] = [...defaultRetryCauses, 'artifact_store', 'container_engine'];
const namesOf = (job: Job) => job.excludedNodes.map(({ node }) => node);
const suspectsOf = (job: Job) => job.checkpoints.filter(({ suspect }) => suspect).map(({ step }) => step);

const infrastructure: readonly CauseKind[] = [
  'gpu_fault',
  'gpu_hw_ecc',
  'gpu_hw_nvlink',
  'gpu_suspect',
  'nccl_error',
  'rendezvous',
  'rendezvous_timeout',
];

describe('of infrastructure', () => {
  it.each(infrastructure)('%s is tried again elsewhere, at once and for nothing', (kind) => {
    const { job, outcome } = recover(aCause(kind));
    expect(outcome).toMatchObject({ next: 'queued', charge: 'node_loss', backoffMs: 0 });
    expect(namesOf(job)).toEqual(['node-1']);
  });

  test('a node that was lost is not excluded: once it is back, nothing is against it', () => {
    const { job, outcome } = recover(aCause('node_lost'));
    expect(outcome).toMatchObject({ next: 'queued', charge: 'node_loss', backoffMs: 0 });
    expect(job.excludedNodes).toEqual([]);
  });

  it.each([...infrastructure, 'node_lost' as const])('%s waits from the second time on', (kind) => {
    const waits = [0, 1, 2, 3].map((failuresInRow) => {
      return recover(aCause(kind), aFailing({ breaker: { failures: 9 } }, { failuresInRow })).outcome;
    });
    expect(waits).toMatchObject([0, 2_000, 4_000, 8_000].map((backoffMs) => ({ backoffMs })));
  });

  it('never uses up the budget', () => {
    expect(recover(aCause('gpu_fault'), aFailing({ max_attempts: 1 })).outcome.next).toBe('queued');
  });

  it('is not believed for ever: once the breaker is open each trial costs one, but not for a lost node', () => {
    const opened = aFailing({ max_attempts: 3, breaker: { failures: 2 } }, { failuresInRow: 1, failures: 1 });
    const { outcome } = recover(aCause('nccl_error'), opened);
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure' });
    expect(recover(aCause('nccl_error'), { ...opened, failures: 2 }).outcome.next).toBe('failed');
    const lost = recover(aCause('node_lost'), { ...opened, failures: 2 });
    expect(lost.outcome).toMatchObject({ next: 'queued', charge: 'node_loss' });
  });

  it('is none if the evidence blames the job: its settings follow it everywhere', () => {
    const { job, outcome } = recover(aCause('nccl_error', {}, { blame: 'job' }));
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure', backoffMs: 2_000 });
    expect(job.excludedNodes).toEqual([]);
  });
});

describe.each<CauseKind>(['nccl_timeout', 'hung'])('%s', (kind) => {
  const cause = aCause(kind, { rank: 3 });

  it('once may be chance', () => {
    const { job, outcome } = recover(cause);
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure', backoffMs: 2_000 });
    expect(job.excludedNodes).toEqual([]);
    expect(job.recentFailures).toEqual([{ cause: kind, resume: 'checkpoint-100', node: 'node-2' }]);
  });

  it('twice in a row excludes the node of the rank that the evidence names', () => {
    const { job } = recover(cause, aFailing({}, { recentFailures: [aFailure(kind)] }));
    expect(namesOf(job)).toEqual(['node-2']);
    // One thing at a time.
    expect(suspectsOf(job)).toEqual([]);
  });

  it('with something else in between is not twice in a row', () => {
    const { job } = recover(cause, aFailing({}, { recentFailures: [aFailure(kind), aFailure('cuda_oom')] }));
    expect(job.excludedNodes).toEqual([]);
  });
});

test('a timeout that names no rank leaves nobody out: who reports it first is who waited', () => {
  const before = aFailing({}, { recentFailures: [aFailure('nccl_timeout')] });
  const { job } = recover(aCause('nccl_timeout'), before);
  expect(job.excludedNodes).toEqual([]);
});

test('a hang that tells no ranks apart excludes the node that stopped first', () => {
  const cause = { ...aCause('hung'), nodeRank: null };
  const { job } = recover(cause, aFailing({}, { recentFailures: [aFailure('hung')] }));
  expect(namesOf(job)).toEqual(['node-1']);
});

describe('cuda_oom', () => {
  it('shrinks the batch', () => {
    const { job, outcome } = recover(aCause('cuda_oom'), aFailing({}, { batchScale: 0.5 }));
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure' });
    expect(job).toMatchObject({ batchScale: 0.25, lrScale: 1, excludedNodes: [] });
  });

  it('shrinks it as the spec says', () => {
    expect(recover(aCause('cuda_oom'), aFailing({ batch_scale: 0.75 })).job.batchScale).toBe(0.75);
    expect(recover(aCause('cuda_oom'), aFailing({ batch_scale: 1 })).outcome.next).toBe('queued');
  });

  it('fails when it is as small as can be, and says so', () => {
    const least = aFailing({}, { batchScale: batchScaleMin * 2 });
    expect(recover(aCause('cuda_oom'), least)).toMatchObject({
      outcome: { next: 'queued' },
      job: { batchScale: batchScaleMin },
    });
    expect(recover(aCause('cuda_oom'), { ...least, batchScale: batchScaleMin }).outcome.next).toBe('failed');
  });

  it('of a GPU that another program uses excludes the node instead', () => {
    const { job, outcome } = recover(aCause('cuda_oom', {}, { blame: 'platform' }));
    expect(outcome).toMatchObject({ next: 'queued', charge: 'node_loss' });
    expect(job.batchScale).toBe(1);
    expect(namesOf(job)).toEqual(['node-1']);
  });

  it('says nothing about the checkpoint, however often', () => {
    const { job } = recover(aCause('cuda_oom'), aFailing({}, { recentFailures: [aFailure('cuda_oom')] }));
    expect(suspectsOf(job)).toEqual([]);
  });
});

describe.each<CauseKind>(['nan_loss', 'loss_divergence', 'loss_scale_exhausted'])('%s', (kind) => {
  const all = [50, 100, 150, 200, 250].map((step) => aCheckpoint(step, { attempt: step > 100 ? 2 : 1 }));
  const sign = { kind: kind as 'nan_loss', step: 210, lastGoodStep: 199 };

  it('goes back before it, more slowly', () => {
    const attempt = anAttemptOfTwo({ signs: [sign] });
    const { job, outcome } = recover(aCause(kind), aFailing({}, { checkpoints: all, lrScale: 0.5 }), attempt);
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure' });
    expect(suspectsOf(job)).toEqual([200, 250]);
    expect(job.lrScale).toBeCloseTo(0.05);
    expect(job.batchScale).toBe(1);
  });

  it('slows down as the spec says', () => {
    expect(recover(aCause(kind), aFailing({ lr_scale: 0.5 })).job.lrScale).toBe(0.5);
  });

  it.each([
    ['only its own step', { ...sign, lastGoodStep: null }, [250]],
    ['no step at all', { ...sign, step: null, lastGoodStep: null }, [250]],
    ['another kind', { kind: 'loss_divergence' as const, step: 120, lastGoodStep: 110 }, [150, 200, 250]],
    ['only that the loss has jumped', { ...sign, kind: 'loss_spike' as const, lastGoodStep: 60 }, [250]],
  ])('whose sign tells %s goes back behind what may have it', (_, given, suspects) => {
    const attempt = anAttemptOfTwo({ signs: [given] });
    const { job } = recover(aCause(kind), aFailing({}, { checkpoints: all }), attempt);
    expect(suspectsOf(job)).toEqual(suspects);
  });

  it('takes none of this attempt that does not tell its step', () => {
    const checkpoints = [aCheckpoint(100), aCheckpoint(null, { attempt: 2 })];
    const attempt = anAttemptOfTwo({ signs: [sign] });
    expect(suspectsOf(recover(aCause(kind), aFailing({}, { checkpoints }), attempt).job)).toEqual([null]);
  });
});

describe('corrupt_checkpoint', () => {
  const text = 'PytorchStreamReader failed reading zip archive: failed finding central directory';
  const verdicts = (job: Job) => job.checkpoints.map(({ verdict }) => verdict);

  it.each([
    ['names none', text],
    ['names it', `cannot load /ckpts/checkpoint-100: ${text}`],
    ['names a file in it', 'invalid header: "/ckpts/checkpoint-100/model.safetensors"'],
    ['comes from a file of the program', `/usr/lib/python3/torch/serialization.py: ${text}`],
  ])('that %s makes what it began from corrupt', (_, problem) => {
    const { job, outcome } = recover(aCause('corrupt_checkpoint', { text: problem }));
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure' });
    expect(job.checkpoints[1]).toMatchObject({ verdict: 'corrupt', problem, suspect: true });
    const notThere = anAttemptOfTwo({ runningAtMs: null });
    expect(suspectsOf(recover(aCause('corrupt_checkpoint'), aFailing(), notThere).job)).toEqual([]);
  });

  it.each<[string, string, Resume | null]>([
    ['names another file', 'cannot load /models/base/model.safetensors', from100],
    ['names another one of a similar name', 'cannot load /ckpts/checkpoint-1000/model.safetensors', from100],
    ['comes from an attempt that began from nothing', text, null],
  ])('that %s is a failure like any other', (_, problem, resume) => {
    const { job, outcome } = recover(
      aCause('corrupt_checkpoint', { text: problem }),
      aFailing(),
      anAttemptOfTwo({ resume }),
    );
    expect(outcome).toMatchObject({ next: 'queued', charge: 'failure' });
    expect(verdicts(job)).toEqual(['verified', 'verified']);
  });

  it('spares what the attempt itself has saved under that name', () => {
    const checkpoints = [aCheckpoint(100, { attempt: 2, version: 'v2' })];
    const { job } = recover(aCause('corrupt_checkpoint'), aFailing({}, { checkpoints }));
    expect(verdicts(job)).toEqual(['verified']);
  });
});

describe('the same failure twice from one checkpoint', () => {
  const twice = (kind: CauseKind, earlier: readonly FailureRecord[], attempt: Partial<Attempt> = {}) =>
    suspectsOf(recover(aCause(kind), aFailing({}, { recentFailures: earlier }), anAttemptOfTwo(attempt)).job);

  it('makes it suspect', () => {
    expect(twice('exit_code', [aFailure('exit_code')])).toEqual([100]);
    // No rank was named, so there is no node to leave out.
    expect(twice('nccl_timeout', [aFailure('nccl_timeout')])).toEqual([100]);
  });

  it('counts across nodes that were lost in between', () => {
    expect(twice('exit_code', [aFailure('exit_code'), aFailure('node_lost')])).toEqual([100]);
  });

  it.each<[string, CauseKind, readonly FailureRecord[], Partial<Attempt>]>([
    ['the first time', 'exit_code', [], {}],
    ['by another cause', 'exit_code', [aFailure('python_exception')], {}],
    ['from another checkpoint', 'exit_code', [aFailure('exit_code', { resume: 'checkpoint-50' })], {}],
    ['from nothing', 'exit_code', [aFailure('exit_code', { resume: null })], { resume: null }],
    ['after something else', 'exit_code', [aFailure('exit_code'), aFailure('unknown')], {}],
    ['of one that got further', 'exit_code', [aFailure('exit_code')], { savedAtMs: someMs }],
    ['for lost nodes', 'node_lost', [aFailure('node_lost')], {}],
    ['for broken GPUs', 'gpu_fault', [aFailure('gpu_fault')], {}],
    ['for want of time', 'time_limit', [aFailure('time_limit')], {}],
    ['for want of room', 'disk_full', [aFailure('disk_full')], {}],
  ])('is not %s', (_, kind, recentFailures, attempt) => {
    expect(twice(kind, recentFailures, attempt)).toEqual([]);
  });

  it('sends the next attempt to the one before', () => {
    const checkpoints = [aCheckpoint(50), aCheckpoint(100)];
    const fields = { checkpoints, lastAttempt: 1 };
    const story = aStory({ retry: { max_attempts: 9, on: ['exit_code'] } }, fields);
    for (const _ of [1, 2]) story.allRunning({ resume: from100 }).ended(0, crash);

    expect(suspectsOf(story.job)).toEqual([100]);
    expect(story.data('checkpoint.suspect')).toMatchObject({ checkpoint: 'checkpoint-100', step: 100 });
  });
});

describe('the budget', () => {
  const unasked = causeKinds.filter((kind) => !byDefault.includes(kind));
  it.each(unasked)('%s is not tried again unless the spec says so', (kind) => {
    const job = aFailing({ on: undefined });
    expect(recover(aCause(kind), job).outcome.next).toBe('failed');
  });

  it.each(defaultRetryCauses)('%s is tried again', (kind) => {
    expect(recover(aCause(kind), aFailing({ on: undefined })).outcome.next).toBe('queued');
  });

  it.each(defaultRetryCauses)('%s is not tried again if the spec names others', (kind) => {
    const on = [kind === 'hung' ? ('cuda_oom' as const) : ('hung' as const)];
    expect(recover(aCause(kind), aFailing({ on })).outcome.next).toBe('failed');
  });

  it('is spent by what the program did', () => {
    const last = aFailing({ max_attempts: 3 }, { failures: 2 });
    expect(recover(aCause('exit_code'), last).outcome.next).toBe('failed');
    expect(recover(aCause('exit_code'), { ...last, failures: 1 }).outcome.next).toBe('queued');
  });

  it('grows the wait by ends in a row, up to a bound', () => {
    const waits = [0, 1, 2, 5, 30].map((failuresInRow) => {
      const job = aFailing({ breaker: { failures: 100 } }, { failuresInRow });
      const { outcome } = recover(aCause('exit_code'), job);
      return outcome.next === 'queued' ? outcome.backoffMs : null;
    });
    expect(waits).toEqual([2_000, 4_000, 8_000, 60_000, 60_000]);
  });

  it('keeps what was learnt of a checkpoint for the job that is made of a failed one', () => {
    const { job, outcome } = recover(aCause('corrupt_checkpoint'), aFailing({ max_attempts: 1 }));
    expect(outcome.next).toBe('failed');
    expect(job.checkpoints[1]?.verdict).toBe('corrupt');
  });
});

describe('the breaker', () => {
  const on = ['exit_code' as const, 'node_lost' as const];
  const retry = { max_attempts: 20, on, breaker: { failures: 3, pause: '5m' } };
  const failing = () => aStory({ retry });
  const fail = (story: ReturnType<typeof failing>) => story.allRunning().ended(0, crash).job.state;

  it('opens after so many failures without progress, then lets one trial through at a time', () => {
    const story = failing();
    expect(fail(story)).toMatchObject({ breakerOpen: false, backoffMs: 2_000 });
    expect(fail(story)).toMatchObject({ breakerOpen: false, backoffMs: 4_000 });
    expect(story.events).not.toContain('job.circuit_open');
    expect(fail(story)).toMatchObject({ breakerOpen: true, backoffMs: 300_000 });
    expect(story.data('job.circuit_open')).toMatchObject({ failuresInRow: 3, pauseMs: 300_000 });
    expect(fail(story)).toMatchObject({ breakerOpen: true, backoffMs: 300_000 });
  });

  it('counts lost nodes, and does not count what was asked for', () => {
    const story = failing()
      .allRunning()
      .lost(0)
      .allRunning()
      .preempted()
      .ended(0)
      .allRunning()
      .requeued()
      .ended(0);
    expect(story.job.failuresInRow).toBe(1);
    const cause = causeOf('node_lost', 'x');
    story.allocated().on({ kind: 'startFailed', attempt: 4, cause, excludeNodes: [] });
    expect(story.job).toMatchObject({ failuresInRow: 1, state: { breakerOpen: false } });
  });

  it('is closed by progress', () => {
    const story = failing();
    for (const _ of [1, 2, 3]) fail(story);
    story.allRunning().saved(10).ended(0, crash);
    expect(story.job).toMatchObject({ failures: 1, failuresInRow: 1, state: { breakerOpen: false } });
  });
});

describe('a node that its attempts broke on', () => {
  it('is excluded until there is progress, not only until the next one runs', () => {
    const story = aStory({ retry: { max_attempts: 9 } }).allRunning();
    const gpuFault = { text: 'Xid 79', gpuUuid: null };
    const exit = anExit({ exitCode: 1 });
    story.on({ kind: 'taskEnded', attempt: 1, nodeRank: 0, exit, failedAtMs: null, gpuFault });
    expect(story.excludedNodes).toEqual(['node-1']);
    expect(story.allRunning().excludedNodes).toEqual(['node-1']);
    expect(story.saved(10).excludedNodes).toEqual([]);
  });
});

test.each([
  [{}, 1_000, true],
  [{ max_preemptions: 2 }, 1, true],
  [{ max_preemptions: 2 }, 2, false],
])('a job of %j that was preempted %i times may be preempted again: %s', (retry, preemptions, may) => {
  expect(mayBePreempted(aJob(1, { spec: aSpec({ preemptible: true, retry }), preemptions }))).toBe(may);
});

test('what has failed for good tells what to do with it', () => {
  const limited = aStory({ max_runtime: '90s' })
    .allRunning()
    .saved(120)
    .on({ kind: 'timeLimit', attempt: 1 });
  expect(limited.ended(0).job.state).toMatchObject({
    cause: {
      message: 'ran for its max_runtime of 90 s; muster requeue resumes from checkpoint-120 (step 120)',
    },
  });
  const unsaved = aStory({ max_runtime: '90s' }).allRunning().on({ kind: 'timeLimit', attempt: 1 }).ended(0);
  expect(unsaved.job.state).toMatchObject({
    cause: { message: expect.stringContaining('it has no known checkpoint') },
  });
});
