/** Runs of pipelines as a store keeps them, each started step in a row of its own. */
import type { JobId } from '@muster/common/ids';
import type { ArtifactView, PipelineState, PipelineStepState } from '@muster/common/pipelines';
import type { PipelineValues } from '@muster/pipelines/model';
import type { Caller } from '../caller.ts';
import type { StoredTrigger } from './triggers.ts';

export interface StoredPipeline {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly project: string;
  /** Who has started it, on whose behalf its jobs are submitted. */
  readonly by: Caller;
  /** The pipeline file, checked, as JSON. */
  readonly spec: string;
  /** Of all parameters. */
  readonly params: PipelineValues;
  /** Whether steps may be taken from earlier runs. */
  readonly usesCache: boolean;
  readonly rerunOf: string | null;
  /** Names of the triggers that have led to it, that which has started it last. Empty: a user has. */
  readonly triggers: readonly string[];
  /** Id of the request, such as a delivery, that has fired its trigger. Absent: none has. */
  readonly requestId?: string;
  readonly state: PipelineState;
  readonly reason: string | null;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
}

/** One instance of a step that was started, or will not be. */
export interface StoredPipelineStep {
  /** Id of the run. */
  readonly run: string;
  readonly step: string;
  readonly index: number;
  readonly state: Exclude<PipelineStepState, 'waiting'>;
  readonly tries: number;
  /** Of the newest try. */
  readonly jobId: JobId | null;
  readonly sweepId: string | null;
  readonly cachedFrom: string | null;
  /** sha256 of what it does and of its inputs. null: it is not cached. */
  readonly cacheKey: string | null;
  readonly reason: string | null;
  /** The artifacts that it has read, by the names of its inputs. */
  readonly inputs: Readonly<Record<string, readonly ArtifactView[]>>;
  readonly outputs: readonly ArtifactView[];
  /** What a sweep hands on: the parameters of its best trial, as JSON. */
  readonly best: string | null;
  /** Its time was up, and it is being stopped. */
  readonly isExpired: boolean;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

export interface StoredPipelines {
  readonly runs: readonly StoredPipeline[];
  /** By run, then by step and index. */
  readonly steps: readonly StoredPipelineStep[];
  /** By name. */
  readonly triggers: readonly StoredTrigger[];
}

export const noStoredPipelines: StoredPipelines = { runs: [], steps: [], triggers: [] };

/** What a batch changes of them. */
export interface PipelineChanges {
  readonly pipelines: readonly StoredPipeline[];
  readonly pipelineSteps: readonly StoredPipelineStep[];
  /** Ids of those to delete, with their steps; one that is not there is no error. */
  readonly removedPipelines: readonly string[];
  readonly triggers: readonly StoredTrigger[];
  /** Names. */
  readonly removedTriggers: readonly string[];
}

export const noPipelineChanges: PipelineChanges = {
  pipelines: [],
  pipelineSteps: [],
  removedPipelines: [],
  triggers: [],
  removedTriggers: [],
};
