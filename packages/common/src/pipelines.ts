/** Runs of pipelines: steps that are jobs, sweeps or commands, with what they hand on. What the API shows; `-o json` prints these. */

/**
 * - `running`: steps run, wait, or will be started
 * - `stopping`: a user has stopped it; steps still end, and those under `finally` run
 * - `succeeded`: every step has succeeded, or was skipped by its condition
 * - `failed`: a step has failed, as `reason` says
 * - `stopped`: it was stopped by a user
 */
export const pipelineStates = ['running', 'stopping', 'succeeded', 'failed', 'stopped'] as const;
export type PipelineState = (typeof pipelineStates)[number];

/**
 * - `waiting`: for other steps
 * - `running`: its job or sweep has not ended
 * - `succeeded`; `cached`: its outputs are those of an earlier run
 * - `failed`: its job has failed as often as it may, or what it needs or makes is not there
 * - `skipped`: its condition does not hold
 * - `blocked`: it was not started, because a step that it needs has failed or the run was stopped
 * - `stopped`: a user has stopped it
 */
export const pipelineStepStates = [
  'waiting',
  'running',
  'succeeded',
  'cached',
  'failed',
  'skipped',
  'blocked',
  'stopped',
] as const;
export type PipelineStepState = (typeof pipelineStepStates)[number];

/** A directory or file that a step has made. */
export interface ArtifactView {
  readonly name: string;
  readonly type: string;
  /** On the nodes. */
  readonly path: string;
  /** Of its files together. */
  readonly bytes: number;
  /** `sha256:` and 64 hexadecimal digits: of a file its content, of a directory the sorted list of its files with theirs. */
  readonly digest: string;
}

export interface PipelineStepView {
  readonly step: string;
  /** `steps`, `on_failure` or `finally`. */
  readonly group: string;
  /** From 0; of a step with `for_each` the position of its item. */
  readonly index: number;
  /** As JSON. null: the step has no `for_each`. */
  readonly item: string | null;
  readonly state: PipelineStepState;
  /** How many times it was started. */
  readonly tries: number;
  /** Of the newest try. null: it is a sweep, or was not started. */
  readonly jobId: string | null;
  readonly sweepId: string | null;
  /** The run whose outputs it has. null: it made its own, or has none. */
  readonly cachedFrom: string | null;
  readonly reason: string | null;
  readonly outputs: readonly ArtifactView[];
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
}

export interface PipelineRunView {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly project: string;
  readonly state: PipelineState;
  readonly reason: string | null;
  /** The pipeline file. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Values of all parameters. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The run that it repeats from a step. null: it is no repetition. */
  readonly rerunOf: string | null;
  /** Name of the trigger that has started it. null: a user has. */
  readonly trigger: string | null;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  /** In an order in which each comes behind those that it waits for. Empty in lists. */
  readonly steps: readonly PipelineStepView[];
}

/** Whether none of its steps runs or will be started. */
export function hasPipelineEnded(state: PipelineState): boolean {
  return state !== 'running' && state !== 'stopping';
}

/** A step in the history of an artifact. */
export interface LineageStepView {
  readonly run: string;
  /** Its name. */
  readonly pipeline: string;
  readonly step: string;
  readonly index: number;
  /** As JSON. null: the step has no `for_each`. */
  readonly item: string | null;
  readonly state: PipelineStepState;
  readonly jobId: string | null;
  /** That its job has run on. */
  readonly nodes: readonly string[];
  /** Of its run. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Digest of the code. null: the pipeline file does not say it. */
  readonly code: string | null;
  readonly inputs: readonly ArtifactView[];
  readonly outputs: readonly ArtifactView[];
  readonly startedAtMs: number;
}

export interface LineageView {
  readonly subject: string;
  /** `artifact`, `run` or `job`. A checkpoint is shown as the job that has saved it. */
  readonly kind: string;
  /** Steps that it comes from, the earliest first; those that have made it last. */
  readonly madeBy: readonly LineageStepView[];
  /** Steps that have used it, directly or by what others have made of it, the earliest first. */
  readonly usedBy: readonly LineageStepView[];
}
