/**
 * Why an attempt ended, one word each. The names are a contract: they stand in job files (`retry.on`), events, metrics
 * and scripts, so a name is never changed and never gets a second meaning.
 */

/** Recognised in the job's own log. */
const logCauses = [
  'cuda_oom',
  'cuda_illegal_access',
  'gpu_suspect',
  'gpu_hw_ecc',
  'gpu_hw_nvlink',
  'nccl_timeout',
  'nccl_error',
  'nan_loss',
  'loss_divergence',
  'loss_scale_exhausted',
  'corrupt_checkpoint',
  'disk_full',
  'shm_exhausted',
  'host_oom',
  'stopped_by_signal',
  'import_error',
  'python_exception',
  'rendezvous',
] as const;

/** Known to Muster itself: from the exit status, the node, the GPU driver, or because it ended the attempt. */
const platformCauses = [
  'exit_code',
  'gpu_fault',
  'node_lost',
  'preempted',
  'time_limit',
  'image_pull',
  'command_not_found',
  'checkpoint_conflict',
  'rendezvous_timeout',
  'hung',
  'phase_unmet',
  'artifact_store',
  'artifact_refused',
  'artifact_invalid',
  'container_engine',
  'cancelled',
] as const;

export const causeKinds = [...logCauses, ...platformCauses, 'unknown'] as const;
export type CauseKind = (typeof causeKinds)[number];

export function isCauseKind(text: string): text is CauseKind {
  return (causeKinds as readonly string[]).includes(text);
}

export const blames = ['job', 'gpu', 'node', 'network', 'storage', 'platform', 'unknown'] as const;
/** Whose fault it is: who has to do something about it. */
export type Blame = (typeof blames)[number];

/** What shows that a cause is the cause. */
export interface Evidence {
  /** Line of the task's output, from 1, counted by line feeds. null: it is not in the output. */
  readonly line: number | null;
  /** The line, the Xid, the signal: at most 500 characters. */
  readonly text: string;
  /** Global rank. null: unknown. */
  readonly rank: number | null;
}

/**
 * Causes a job may ask to be retried on. Three are not offered: a cancelled job was ended on purpose, a preempted one goes back to
 * the queue anyway, without using up an attempt of its retry policy, and what follows a phase that was not met is said there.
 */
export type RetryableCause = Exclude<CauseKind, 'cancelled' | 'preempted' | 'phase_unmet'>;

export const retryableCauses: readonly RetryableCause[] = causeKinds.filter(
  (kind): kind is RetryableCause => kind !== 'cancelled' && kind !== 'preempted' && kind !== 'phase_unmet',
);

/**
 * What `retry.max_attempts` retries on unless `retry.on` says otherwise: causes that lie outside the program, so that
 * the same program can succeed on the next attempt, and those that the next attempt does something about: a smaller batch
 * after `cuda_oom`, an earlier checkpoint and a smaller learning rate after a divergence, the checkpoint before after
 * `corrupt_checkpoint`. Any other program error (`exit_code`, `import_error` …) repeats itself and would only burn GPU
 * hours; a user who knows better names it.
 */
export const defaultRetryCauses: readonly RetryableCause[] = [
  'node_lost',
  'gpu_fault',
  'gpu_suspect',
  'gpu_hw_ecc',
  'gpu_hw_nvlink',
  'nccl_timeout',
  'nccl_error',
  'rendezvous',
  'rendezvous_timeout',
  'hung',
  'image_pull',
  'corrupt_checkpoint',
  'cuda_oom',
  'nan_loss',
  'loss_divergence',
  'loss_scale_exhausted',
];

/** They have joined the default since, and no spec names them: the digest of every stored spec would change with an upgrade. */
const laterDefaultCauses: readonly RetryableCause[] = ['artifact_store', 'container_engine'];

/**
 * The causes that a job is retried on.
 * @param on of its spec: exactly the list of the first version, where its file has none
 */
export function retriedCauses(on: readonly RetryableCause[]): readonly RetryableCause[] {
  const isDefault =
    on.length === defaultRetryCauses.length && on.every((each, index) => each === defaultRetryCauses[index]);
  return isDefault ? [...on, ...laterDefaultCauses] : on;
}
