/**
 * Which checkpoints of a job must be evaluated after a change of the job. This is decided in the commit that makes the change, so
 * that a checkpoint that was verified a moment before the coordinator was killed is not forgotten. Pure.
 */
import { type Checkpoint, externalCheckpoint, isSetAside } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';
import { isGood, resumeCandidates } from '../lifecycle/resume.ts';
import type { Job } from '../model.ts';
import type { JobEvaluations, StoredEvaluation } from '../store/evaluations.ts';
import { evaluationOfCheckpoint, isOpen } from './evaluations.ts';

/** Older ones that have ended are forgotten: a job keeps no more checkpoints either. */
const keptMax = 64;

type Saved = Pick<Job, 'id' | 'spec' | 'state' | 'checkpoints'>;

/** @returns `known` itself if there is nothing to record */
export function withDueEvaluations(
  before: Saved,
  after: Saved,
  known: JobEvaluations | undefined,
  nowMs: number,
): JobEvaluations | undefined {
  const { evaluate, checkpoint } = after.spec;
  if (evaluate === null) return known;
  const { every, on } = evaluate;
  let of = known;
  const none = noneOf(after.id);
  if (every !== null) {
    for (const each of newlyVerified(before, after)) {
      const counted = of ?? none;
      of = { ...counted, seen: counted.seen + 1 };
      if (of.seen % every === 0) of = withOne(of, each, nowMs);
    }
  }
  const { keepBest } = checkpoint;
  if (on === 'best' && keepBest !== null) {
    const sign = keepBest.mode === 'min' ? 1 : -1;
    for (const each of changedOwn(before, after)) {
      const value = each.metrics[keepBest.metric];
      if (value === undefined || !isGood(each)) continue;
      const seen = of ?? none;
      const isBetter = seen.bestValue === null || sign * value < sign * seen.bestValue;
      if (isBetter) of = withOne({ ...seen, bestValue: value }, each, nowMs);
    }
  }
  if (on === 'final' && after.state.kind === 'succeeded' && before.state.kind !== 'succeeded') {
    const newest = { checkpoints: after.checkpoints, resumeChoice: { kind: 'newest' } } as const;
    const last = resumeCandidates(newest).find(({ name }) => externalCheckpoint(name) === null);
    if (last !== undefined) of = withOne(of ?? none, last, nowMs);
  }
  return of;
}

/** What the job itself has saved, and not one whose checkpoints it has inherited. */
function changedOwn(before: Saved, after: Saved): readonly Checkpoint[] {
  if (before.checkpoints === after.checkpoints) return [];
  const known = new Set(before.checkpoints);
  return after.checkpoints.filter((each) => each.attempt > 0 && !known.has(each) && !isSetAside(each.name));
}

function newlyVerified(before: Saved, after: Saved): readonly Checkpoint[] {
  const verifiedBefore = before.checkpoints.filter(({ verdict }) => verdict === 'verified');
  return changedOwn(before, after).filter(
    (each) => isGood(each) && !verifiedBefore.some((other) => isSame(other, each)),
  );
}

function isSame(a: Pick<Checkpoint, 'name' | 'version'>, b: Pick<Checkpoint, 'name' | 'version'>): boolean {
  return a.name === b.name && a.version === b.version;
}

/** Adds an evaluation of this checkpoint, whatever `every` and `on` are. @returns `known` itself if it is or was evaluated */
export function withEvaluationOf(
  id: JobId,
  known: JobEvaluations | undefined,
  checkpoint: Checkpoint,
  nowMs: number,
): JobEvaluations {
  return withOne(known ?? noneOf(id), checkpoint, nowMs);
}

function noneOf(job: JobId): JobEvaluations {
  return { job, seen: 0, bestValue: null, next: 0, evaluations: [] };
}

/** One checkpoint is evaluated once. */
function withOne(of: JobEvaluations, checkpoint: Checkpoint, nowMs: number): JobEvaluations {
  if (evaluationOfCheckpoint(of, checkpoint) !== null) return of;
  const { name, version, step } = checkpoint;
  const due: StoredEvaluation = {
    number: of.next,
    checkpoint: name,
    version,
    step,
    state: 'waiting',
    jobId: null,
    metrics: {},
    cause: null,
    message: null,
    dueAtMs: nowMs,
    endedAtMs: null,
  };
  return { ...of, next: of.next + 1, evaluations: bounded([...of.evaluations, due]) };
}

function bounded(evaluations: readonly StoredEvaluation[]): readonly StoredEvaluation[] {
  if (evaluations.length <= keptMax) return evaluations;
  const oldest = evaluations.find((each) => !isOpen(each));
  return evaluations.filter((each) => each !== oldest);
}
