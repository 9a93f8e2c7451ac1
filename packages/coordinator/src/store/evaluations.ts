/** Evaluations of checkpoints as a store keeps them: those of one job are one row. */
import type { EvaluationState } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';

export interface StoredEvaluation {
  /** From 0, in the order in which they became due. */
  readonly number: number;
  /** The name of the checkpoint, as its job has it. */
  readonly checkpoint: string;
  readonly version: string;
  readonly step: number | null;
  readonly state: EvaluationState;
  /** null: not submitted yet, or refused. */
  readonly jobId: JobId | null;
  readonly metrics: Readonly<Record<string, number>>;
  readonly cause: string | null;
  readonly message: string | null;
  readonly dueAtMs: number;
  readonly endedAtMs: number | null;
}

/** Those of one job. */
export interface JobEvaluations {
  readonly job: JobId;
  /** Verified checkpoints so far. */
  readonly seen: number;
  /** With `on: best`: the best value of the training's own metric so far. null: none yet. */
  readonly bestValue: number | null;
  /** The number of the next one. */
  readonly next: number;
  /** The newest ones, oldest first. */
  readonly evaluations: readonly StoredEvaluation[];
}

/** What a batch changes of them. */
export interface EvaluationChanges {
  readonly evaluations: readonly JobEvaluations[];
  /** Ids of the jobs that were evaluated; one that is not there is no error. */
  readonly removedEvaluations: readonly JobId[];
}

export const noEvaluationChanges: EvaluationChanges = { evaluations: [], removedEvaluations: [] };
