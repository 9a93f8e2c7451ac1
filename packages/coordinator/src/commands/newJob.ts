/** A job as it is submitted. */
import { type JobId, newJobId, type RandomBytes } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import { firstPhase } from '../lifecycle/phases.ts';
import type { Job, JobArray } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';
import type { Draft } from '../state/state.ts';

export interface NewJob {
  readonly spec: JobSpec;
  readonly array: JobArray | null;
  readonly requeuedFrom: JobId | null;
  readonly submittedAtMs: number;
  readonly user: string;
  /** Id of the budget that it counts in. */
  readonly budget: string | null;
  readonly traceparent: string | null;
  /** Its place in the order of submission; without one it gets the next. */
  readonly submitSeq?: number | undefined;
}

/** With an id of its own; not in the draft yet. */
export function aNewJob(
  draft: Draft,
  { spec, array, requeuedFrom, submittedAtMs, user, budget, traceparent, submitSeq }: NewJob,
  random: RandomBytes,
): Job {
  const id = newJobId(random);
  const sinceMs = submittedAtMs;
  return {
    id,
    submitSeq: submitSeq ?? draft.takeSubmitSeqs(1),
    spec,
    array,
    requeuedFrom,
    resumedFrom: null,
    submittedAtMs,
    user,
    state: { kind: 'queued', backoffMs: 0, lastCause: null, sinceMs, breakerOpen: false },
    lastAttempt: 0,
    failures: 0,
    failedStarts: 0,
    excludedNodes: [],
    checkpoints: [],
    resumeChoice: { kind: 'newest' },
    checkpointJobId: id,
    lineage: [],
    recentFailures: [],
    failuresInRow: 0,
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    ledger: [],
    phase: firstPhase(spec, 0),
    budget,
    traceparent,
  };
}

export function addJob(draft: Draft, job: Job, nowMs: number): void {
  const { id, spec, array, requeuedFrom, resumedFrom } = job;
  draft.addJob(job);
  const data = {
    name: ownName(job),
    project: spec.project,
    ...(array === null ? {} : { arrayId: array.id, arrayIndex: array.index }),
    ...(requeuedFrom === null ? {} : { requeuedFrom }),
    ...(resumedFrom === null ? {} : { resumedFrom }),
  };
  draft.emit({ kind: 'job.submitted', subject: id, data }, nowMs);
}
