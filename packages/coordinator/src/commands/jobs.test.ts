/** What people ask of jobs, as commands on a draft. */
import type { ResumeChoice } from '@muster/common/checkpoints';
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { describe, expect, it } from 'vitest';
import type { Job } from '../model.ts';
import { aCheckpoint, aJob, aSpec, jobIdOf } from '../modelFixture.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { noStoredAlerts } from '../store/alerts.ts';
import { noStoredPipelines } from '../store/pipelines.ts';
import { noStoredSweeps } from '../store/sweeps.ts';
import { aStory, crash } from '../storyFixture.ts';
import { EndedMeanwhile } from './inheritedCheckpoints.ts';
import { extendJob, requeueJob } from './jobs.ts';

const random = (size: number) => new Uint8Array(size).fill(7);
const nowMs = 1_700_000_100_000;

function draftWith(job: Job, isOver = false): Draft {
  return new Draft(
    new ClusterState({
      clusterId: 'test',
      activeJobs: isOver ? [] : [job],
      unfilledArrays: [],
      outcomes: new Map(isOver ? [[job.id, 'failed']] : []),
      successors: new Map(),
      arrayFailures: new Map(),
      nodes: [],
      credentials: [],
      users: [],
      projects: [],
      alerts: noStoredAlerts,
      sweeps: noStoredSweeps,
      pipelines: noStoredPipelines,
      evaluations: [],
      budgets: [],
      lastSubmitSeq: 1,
      lastEventSeq: 0,
      subjectSeqs: new Map(),
    }),
  );
}

/** @returns the id of the job that runs again */
function requeued(draft: Draft, job: Job, from: ResumeChoice = { kind: 'newest' }): JobId | undefined {
  const { id, spec } = job;
  const command = { spec, requestId: 'r', digest: 'd', arraySize: 0, requeuedFrom: id, place: null, from };
  return requeueJob(draft, { ...command, saved: job, isEdited: false, force: true }, random, nowMs).jobIds[0];
}

const refusal = (what: string) =>
  expect.objectContaining({ code: 'failed_precondition', message: expect.stringContaining(what) });

const checkpoints = [
  aCheckpoint(100, { attempt: 2 }),
  aCheckpoint(200, { attempt: 2, suspect: true }),
  aCheckpoint(300, { attempt: 3, verdict: 'corrupt' }),
  aCheckpoint(400, { attempt: 3 }),
];
const failed = aJob(1, {
  checkpoints,
  checkpointJobId: jobIdOf(77),
  state: { kind: 'succeeded', endedAtMs: 1 },
  lastAttempt: 3,
  failures: 2,
  failuresInRow: 2,
  batchScale: 0.25,
  lrScale: 0.1,
  preemptions: 3,
  extraRuntimeMs: 5,
});

describe('a job that has ended and is requeued', () => {
  it('goes on in a new one, from the same checkpoints and in the same directory', () => {
    const draft = draftWith(failed, true);
    const from = { kind: 'step', step: 100 } as const;
    const id = requeued(draft, failed, from);
    if (id === undefined) throw new Error('there is a new job');

    expect(draft.job(id)).toMatchObject({
      requeuedFrom: failed.id,
      // Whatever the new job saves is newer.
      checkpoints: checkpoints.map((each) => ({ ...each, attempt: 0 })),
      checkpointJobId: jobIdOf(77),
      resumeChoice: from,
      state: { kind: 'queued', sinceMs: nowMs },
      lastAttempt: 0,
      failures: 0,
      failuresInRow: 0,
      preemptions: 0,
      extraRuntimeMs: 0,
      batchScale: 1,
      lrScale: 1,
      ledger: [],
    });
  });

  it('is refused while another one goes on from there, unless it begins anew in a directory of its own', () => {
    const draft = draftWith(failed, true);
    const first = requeued(draft, failed);
    const again = (from: ResumeChoice) => {
      const { id, spec } = failed;
      const command = {
        spec,
        requestId: `r ${from.kind}`,
        digest: 'e',
        arraySize: 0,
        requeuedFrom: id,
        place: null,
        from,
      };
      const other = (size: number) => new Uint8Array(size).fill(8);
      return requeueJob(draft, { ...command, saved: failed, isEdited: false, force: true }, other, nowMs)
        .jobIds[0];
    };
    expect(() => again({ kind: 'newest' })).toThrow(refusal(`${first} continues from the checkpoints`));
    const fresh = again({ kind: 'start' });
    expect(draft.job(fresh ?? failed.id)).toMatchObject({
      checkpoints: [],
      checkpointJobId: fresh,
      lineage: [jobIdOf(77)],
    });
  });

  it.each([
    [99, 'no good checkpoint of step 99, only those of steps 100, 400'],
    [200, 'no good checkpoint of step 200'],
  ])('from step %i is refused, and told which there are', (step, words) => {
    expect(() => requeued(draftWith(failed, true), failed, { kind: 'step', step })).toThrow(refusal(words));
  });

  it('from a step is refused if it has saved nothing', () => {
    const bare = aJob(1, { state: failed.state });
    const ask = () => requeued(draftWith(bare, true), bare, { kind: 'step', step: 9 });
    expect(ask).toThrow(refusal('only none with a known step'));
    expect(ask).toThrow(MusterError);
  });

  it('has to be read again if it had not ended when it was read', () => {
    const asRead = { ...failed, state: aJob(1).state };
    expect(() => requeued(draftWith(failed, true), asRead)).toThrow(EndedMeanwhile);
  });
});

describe('a job that has not ended and is requeued', () => {
  it('goes by the checkpoints that it has now, not by those that were read before', () => {
    const { job } = aStory().allRunning().saved(50);
    const draft = draftWith(job);
    const from = { kind: 'step', step: 50 } as const;
    expect(requeued(draft, { ...job, checkpoints: [] }, from)).toBe(job.id);
    expect(draft.job(job.id)).toMatchObject({ resumeChoice: from, state: { kind: 'stopping' } });
  });

  it('is not told to wait for its end while only a phase of it ends', () => {
    const phases = [
      { name: 'broad', steps: 50 },
      { name: 'cooldown', steps: 10 },
    ];
    const complete = (of: typeof phases) =>
      aStory({ phases: of }).allRunning().saved(50).on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 })
        .job;
    const draft = draftWith(complete(phases));
    requeued(draft, complete(phases), { kind: 'step', step: 50 });
    expect(draft.job(jobIdOf(1))).toMatchObject({ resumeChoice: { kind: 'step' }, phase: { index: 0 } });
    const last = complete(phases.slice(0, 1));
    expect(() => requeued(draftWith(last), last)).toThrow(refusal('its work is done'));
  });

  it('is refused a step that it has not saved', () => {
    const { job } = aStory().allRunning().saved(50);
    expect(() => requeued(draftWith(job), job, { kind: 'step', step: 49 })).toThrow(refusal('steps 50'));
  });
});

describe('more time', () => {
  const limited = aSpec({ max_runtime: '1h' });

  it('is added to what it may take', () => {
    const draft = draftWith(aJob(1, { spec: limited }));
    extendJob(draft, jobIdOf(1), 1_000, nowMs);
    extendJob(draft, jobIdOf(1), 2_000, nowMs);
    expect(draft.job(jobIdOf(1))?.extraRuntimeMs).toBe(3_000);
  });

  it.each<[string, Draft, string]>([
    ['without a limit', draftWith(aJob(1)), 'has no max_runtime'],
    ['that has ended', draftWith(failed, true), 'has ended; `muster requeue'],
    [
      'that ends for good',
      draftWith(aStory({ max_runtime: '1h' }).allRunning().on({ kind: 'timeLimit', attempt: 1 }).job),
      'is stopping',
    ],
  ])('is refused to a job %s', (_, draft, words) => {
    expect(() => extendJob(draft, jobIdOf(1), 1_000, nowMs)).toThrow(refusal(words));
  });

  it('is granted to a job that comes back', () => {
    const retry = { max_attempts: 2, on: ['exit_code' as const] };
    const story = aStory({ max_runtime: '1h', retry }).allRunning().preempted();
    const draft = draftWith(story.job);
    extendJob(draft, story.job.id, 1_000, nowMs);
    expect(story.ended(0, crash).job.state.kind).toBe('queued');
    expect(draft.job(story.job.id)?.extraRuntimeMs).toBe(1_000);
  });

  it('is granted to a job that has phases left', () => {
    const phases = [
      { name: 'broad', steps: 50 },
      { name: 'cooldown', steps: 10 },
    ];
    const { job } = aStory({ max_runtime: '1h', phases })
      .allRunning()
      .on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 });
    const draft = draftWith(job);
    extendJob(draft, job.id, 1_000, nowMs);
    expect(draft.job(job.id)?.extraRuntimeMs).toBe(1_000);
  });
});
