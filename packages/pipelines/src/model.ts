/** What a pipeline file says once it has been checked. */
import type { artifactTypes, StoreSpec } from '@muster/common/spec/artifactFields';
import type { FileMapping } from '@muster/experiments/file/findings';

export const parameterTypes = ['string', 'int', 'float', 'bool', 'list'] as const;
export type PipelineParameterType = (typeof parameterTypes)[number];

export type PlainValue = string | number | boolean;
export type PipelineValue = PlainValue | readonly PlainValue[];
/** Of parameters, by their names. */
export type PipelineValues = Readonly<Record<string, PipelineValue>>;

export interface PipelineParameter {
  readonly name: string;
  readonly type: PipelineParameterType;
  /** null: every run must say it. */
  readonly default: PipelineValue | null;
}

export type ArtifactType = (typeof artifactTypes)[number];

export interface StepOutput {
  readonly name: string;
  readonly type: ArtifactType;
  /** Absolute, or below the directory of its step. May hold `${params.NAME}`. */
  readonly path: string;
}

export type StepInput =
  | { readonly name: string; readonly kind: 'output'; readonly step: string; readonly output: string }
  /** Holds `${params.NAME}`. */
  | { readonly name: string; readonly kind: 'text'; readonly text: string };

/** A job, a sweep or a command, as their files have them; `${…}` in their texts is filled in when the step starts. */
export type StepWork =
  | { readonly kind: 'job'; readonly file: FileMapping }
  | { readonly kind: 'sweep'; readonly file: FileMapping }
  | { readonly kind: 'run'; readonly command: string | readonly string[] };

/** - `on_failure`: runs after the steps when one of them has failed; `finally`: runs last, whatever has happened */
export const stepGroups = ['steps', 'on_failure', 'finally'] as const;
export type StepGroup = (typeof stepGroups)[number];

export interface PipelineStep {
  readonly name: string;
  readonly group: StepGroup;
  readonly work: StepWork;
  /** Settings of the job file that the step says itself, for its jobs that do not. May hold `${params.NAME}`. */
  readonly jobSettings: FileMapping;
  readonly after: readonly string[];
  readonly inputs: readonly StepInput[];
  readonly outputs: readonly StepOutput[];
  /** Values, or the name of a parameter that is a list. null: the step runs once. */
  readonly forEach: readonly PlainValue[] | { readonly parameter: string } | null;
  /** In CEL. null: always. */
  readonly when: string | null;
  /** How many times it is started again after a failure, with a job of its own each time. */
  readonly retries: number;
  /** From its start, the time in the queue included. null: no limit. */
  readonly timeoutMs: number | null;
  /** null: never taken from an earlier run. */
  readonly cache: { readonly ttlMs: number | null } | null;
}

/** Where the outputs of steps are kept. Its texts may hold `${params.NAME}`. */
export type ArtifactPlace =
  /** That all nodes share. */
  { readonly kind: 'directory'; readonly path: string } | ({ readonly kind: 'store' } & StoreSpec);

export interface PipelineSpec {
  readonly name: string;
  /** Of all its jobs. */
  readonly project: string;
  /** Of its jobs that have none, and no image. null: as a job file without it. */
  readonly workdir: string | null;
  /** Of its jobs; what a job sets itself counts. */
  readonly env: Readonly<Record<string, string>>;
  readonly params: readonly PipelineParameter[];
  /** null: no step needs it. */
  readonly artifacts: ArtifactPlace | null;
  /** What the code of the steps is: a directory where the pipeline is submitted, or its digest. null: not said. */
  readonly code: { readonly directory: string } | { readonly digest: string } | null;
  /** Jobs and sweeps at the same time. null: no limit. */
  readonly parallel: number | null;
  /** In each group, a step comes behind those that it waits for. */
  readonly steps: readonly PipelineStep[];
}
