/** The types of checkpoints: what a job has saved, where it lies, and whether it is intact. */

import { isJobId, type JobId, type TaskRef } from './ids.ts';

export const checkpointVerdicts = ['verified', 'corrupt', 'unverified', 'gone'] as const;
/**
 * `verified`: every file of it was read as far as `depth` requires and is intact. `corrupt`: it is not what was written, or could
 * not be loaded; what a second reading has not confirmed may have been an error of the storage.
 * `unverified`: it looks complete, and nothing is known of what is in it: an unknown format, or not looked at yet.
 * `gone`: it was there once, and has been deleted or moved.
 */
export type CheckpointVerdict = (typeof checkpointVerdicts)[number];

export const verificationDepths = ['quick', 'deep'] as const;
/** `quick`: directories, headers, sizes, offsets, shards. `deep`: every byte, against the sums that the format keeps. */
export type VerificationDepth = (typeof verificationDepths)[number];

/**
 * The name of a checkpoint that does not lie in the directory of the job that has it, because that was asked to continue from
 * another one's: an absolute path as the job sees it, or `job_…/NAME` below the directory that a node keeps for that job.
 */
export type ExternalCheckpoint =
  | { readonly kind: 'path'; readonly directory: string; readonly name: string }
  | { readonly kind: 'kept'; readonly jobId: JobId; readonly name: string };

/** @returns null: it lies in the directory of its own job */
export function externalCheckpoint(name: string): ExternalCheckpoint | null {
  const slash = name.indexOf('/');
  if (slash === 0) {
    const last = name.lastIndexOf('/');
    return { kind: 'path', directory: name.slice(0, last) || '/', name: name.slice(last + 1) };
  }
  const first = name.slice(0, slash);
  return slash > 0 && isJobId(first) ? { kind: 'kept', jobId: first, name: name.slice(slash + 1) } : null;
}

/** `NAME.attempt-2`, or `NAME.attempt-2.3` where such names were taken. */
const setAside = /\.attempt-\d{1,10}(?:\.\d{1,4})?$/;

/** True for a checkpoint that was set aside, because a later attempt has resumed from an earlier step. A user can resume from it by name. */
export function isSetAside(name: string): boolean {
  return setAside.test(name);
}

/** The name that it had before it was set aside. Any other name stays as it is. */
export function nameBeforeSetAside(name: string): string {
  return name.replace(setAside, '');
}

/** A name and what lies under it: a program may write one name again and again. */
export type CheckpointVersion = Pick<CheckpointFacts, 'name' | 'version'>;

/** One that is damaged: another version of that name may be good. */
export type CorruptCheckpoint = CheckpointVersion;

/** What is known of one checkpoint from looking at it. */
export interface CheckpointFacts {
  /** Path below the checkpoint directory: `checkpoint-500`, `ckpt.pt`, `last/step_10.safetensors`. */
  readonly name: string;
  /** Another one for other contents: a program may write one name again and again. At most 64 characters. */
  readonly version: string;
  /** Training step it was saved at. null: neither its name nor its contents contain one. */
  readonly step: number | null;
  /** `torch`, `safetensors`, `huggingface`, `lightning`, `deepspeed`, `torch_dcp`, `megatron`, `json`, `unknown`. */
  readonly format: string;
  readonly bytes: number;
  readonly files: number;
  /** Wall clock of the node: when its last byte was written. */
  readonly savedAtMs: number;
  /** From the first change seen until it was complete. null: it was complete when first seen. */
  readonly saveDurationMs: number | null;
  /** What the program printed around that step, by canonical name (`train_loss`, `eval_loss` …). */
  readonly metrics: Readonly<Record<string, number>>;
  /** `sha256:…` over names, sizes and contents. null: only looked at quickly. */
  readonly digest: string | null;
  readonly verdict: CheckpointVerdict;
  /** null with `unverified`. */
  readonly depth: VerificationDepth | null;
  /** What is wrong with it, or why that is unknown. null: nothing is wrong. */
  readonly problem: string | null;
  /**
   * The verdict is that of a second reading, `secondReadingMs` or more after one that found it corrupt: only now a corrupt one
   * is renamed, and one that is verified was reported as corrupt by mistake.
   */
  readonly reread: boolean;
  /**
   * Digest of the names, the sizes and the small parts of its files (headers, directories, indexes), at most 64 characters. Unlike
   * `version` it is the same on every node. Absent: an older agent has verified it, or nothing of it could be read.
   */
  readonly fingerprint?: string;
}

/** One version of a checkpoint, as an order to prepare names it. */
export interface CheckpointIdentity extends CheckpointVersion {
  /** null: not known. */
  readonly fingerprint: string | null;
  readonly bytes: number;
  readonly files: number;
}

/** The look at the checkpoints that an attempt may resume from, before its start. */
export interface LookOrder {
  /** The best first, at most `lookCandidatesMax`. */
  readonly candidates: readonly CheckpointIdentity[];
  /** No later step is wanted. null: the newest is. */
  readonly stepMax: number | null;
}

/** An older candidate than these is not looked at: something is wrong with more than its checkpoints then. */
export const lookCandidatesMax = 16;
/** Maximum checkpoints that one look reports. */
export const lookFoundMax = 64;

/** A checkpoint as a look has found it. */
export interface FoundCheckpoint {
  /** `verified`: in this very version, before or in this look. Any other verdict: it must not be used. */
  readonly checkpoint: CheckpointFacts;
  /** The job and the attempt that saved it, by the index of the directory. null: unknown. */
  readonly by: string | null;
  readonly attempt: number | null;
}

/** What is really in the directory of a job before an attempt starts. */
export interface CheckpointLook {
  readonly found: readonly FoundCheckpoint[];
  /** They lie on storage that other nodes see under the same path. */
  readonly shared: boolean;
  /** Nothing is there, or nothing can be read: the end of a sentence that follows the directory's path. null: it was looked at. */
  readonly problem: string | null;
  readonly tookMs: number;
}

/** The reason why an attempt is not offered what was planned. */
export interface ChosenBecause {
  /** The end of a sentence: `found on disk; node-1 had reported step 6`. Absent: it is the planned one. */
  readonly why?: string;
}

/** What an agent reports of a checkpoint that a task of it has saved, or offers. */
export interface CheckpointSeen {
  readonly task: TaskRef;
  readonly checkpoint: CheckpointFacts;
  readonly shared: boolean;
  /** Begun after the first signal of a stop. */
  readonly afterStop: boolean;
  /** The job that saved it, by the index of the directory. Absent: unknown, or an older agent reports it. */
  readonly by?: string;
  /** The attempt of that job that saved it. Absent: as with `by`. */
  readonly attempt?: number;
  /** It was there when the attempt of the task began, and no index names the attempt that saved it. Absent: the index names it. */
  readonly found?: boolean;
}

/** Between two readings that must agree: by then a file server has returned, and a save that was still running has ended. */
export const secondReadingMs = 30_000;

/** Which checkpoint a job begins from, should it be run again. */
export type ResumeChoice =
  /** The newest that is verified and not suspected. */
  | { readonly kind: 'newest' }
  /** The newest such one at or before this step. */
  | { readonly kind: 'step'; readonly step: number }
  /** The one of this name, which may be one that was set aside. */
  | { readonly kind: 'name'; readonly name: string }
  /** From nothing. */
  | { readonly kind: 'start' };

/**
 * - `waiting`: its job is about to be submitted
 * - `running`: its job has not ended
 * - `complete`: it has metrics
 * - `failed`: it has none, and `cause` names the reason; the training is not affected
 */
export const evaluationStates = ['waiting', 'running', 'complete', 'failed'] as const;
export type EvaluationState = (typeof evaluationStates)[number];

/** What an evaluation, which is a job of its own, has found out about a checkpoint. */
export interface CheckpointEvaluation {
  readonly state: EvaluationState;
  /** null: not submitted yet, or refused. */
  readonly jobId: string | null;
  /** By canonical name, as its output showed them last. */
  readonly metrics: Readonly<Record<string, number>>;
  /**
   * Why it has failed, as causes of jobs are named; `no_metric`: its output never showed the metric; `refused`: it could not be
   * submitted.
   */
  readonly cause: string | null;
  /** More about the cause. */
  readonly message: string | null;
  /** Its metric is the best of all evaluations of the job: keep rules never delete the checkpoint. */
  readonly best: boolean;
}

/** Labels of the job of an evaluation: what it evaluates. */
export const evaluatesLabel = 'muster.evaluates';
export const evaluatedCheckpointLabel = 'muster.checkpoint';

/** What the coordinator sends an agent about the checkpoints that the agent must not delete. */
export interface KeptCheckpoints {
  /** Somebody needs them. */
  readonly held: readonly CheckpointVersion[];
  /** Wall clock: of what was saved later, nobody has decided yet whether it is needed. */
  readonly decidedSavedAtMs: number;
}

/** A checkpoint of a job, as the coordinator keeps it. */
export interface Checkpoint extends CheckpointFacts {
  /** The attempt that saved it. */
  readonly attempt: number;
  /** The node that has seen it. */
  readonly node: string;
  /** It lies on storage that other nodes see under the same path. */
  readonly shared: boolean;
  /** Attempts that were offered it died twice in the same way: not chosen any longer. */
  readonly suspect: boolean;
  /** Saved at or after the moment when the loss became NaN or diverged: chosen only when there is no other. Absent: it was not. */
  readonly diverged?: true;
  /**
   * A later attempt than the one that saved it has found it: signs of the training that saved it may be missing, so that it is not
   * known to be sound. Absent: it was reported.
   */
  readonly found?: true;
  /** With `found`: nothing names the attempt that saved it, and `attempt` is the last one that can have. Absent: it is known. */
  readonly saverUnknown?: true;
  /** Only where it is shown. Absent: it is not evaluated. */
  readonly evaluation?: CheckpointEvaluation;
}
