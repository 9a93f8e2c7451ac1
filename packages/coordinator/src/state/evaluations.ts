/** Evaluations of checkpoints in the state, and what a draft changes of them. */
import type { CheckpointVersion } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';
import type { EvaluationChanges, JobEvaluations, StoredEvaluation } from '../store/evaluations.ts';
import { applyChanges, removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';

export interface Evaluations {
  /** By the job that is evaluated. */
  readonly byJob: Map<JobId, JobEvaluations>;
  /** Those of them with an evaluation that has not ended. */
  readonly open: Set<JobId>;
}

export function evaluationsOf(stored: readonly JobEvaluations[]): Evaluations {
  const open = stored.filter(hasOpen).map(({ job }) => job);
  return { byJob: new Map(stored.map((each) => [each.job, each])), open: new Set(open) };
}

export function isOpen({ state }: Pick<StoredEvaluation, 'state'>): boolean {
  return state === 'waiting' || state === 'running';
}

/** @returns null: that version of the checkpoint was not to be evaluated so far */
export function evaluationOfCheckpoint(
  of: JobEvaluations | undefined,
  { name, version }: CheckpointVersion,
): StoredEvaluation | null {
  return of?.evaluations.findLast((each) => each.checkpoint === name && each.version === version) ?? null;
}

function hasOpen({ evaluations }: JobEvaluations): boolean {
  return evaluations.some(isOpen);
}

export class DraftedEvaluations {
  /** null: removed. */
  private readonly changed = new Map<JobId, JobEvaluations | null>();
  private readonly base: Evaluations;
  private readonly set: SetUndoably;

  constructor(base: Evaluations, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  of(job: JobId): JobEvaluations | undefined {
    const drafted = this.changed.get(job);
    return drafted === undefined ? this.base.byJob.get(job) : (drafted ?? undefined);
  }

  /** Whether any was not started yet. */
  hasWaiting(): boolean {
    const jobs = new Set([...this.base.open, ...this.changed.keys()]);
    return [...jobs].some(
      (job) => this.of(job)?.evaluations.some(({ state }) => state === 'waiting') === true,
    );
  }

  put(evaluations: JobEvaluations): void {
    this.set(this.changed, evaluations.job, evaluations);
  }

  remove(job: JobId): void {
    this.set(this.changed, job, null);
  }

  toBatch(): EvaluationChanges {
    return {
      evaluations: [...this.changed.values()].filter((each) => each !== null),
      removedEvaluations: removedOf(this.changed),
    };
  }

  /** After the commit. */
  apply(): void {
    const { byJob, open } = this.base;
    applyChanges(byJob, this.changed);
    for (const [job, evaluations] of this.changed) {
      if (evaluations !== null && hasOpen(evaluations)) open.add(job);
      else open.delete(job);
    }
  }
}
