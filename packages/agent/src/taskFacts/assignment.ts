import type { CorruptCheckpoint, LookOrder } from '@muster/common/checkpoints';
import type { JobId, TaskRef } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Resume } from '@muster/common/views';

/** A task as the coordinator assigned it. */
export interface Assignment {
  readonly task: TaskRef;
  readonly spec: JobSpec;
  /** Who submitted the job; empty: an older coordinator does not name the user. */
  readonly user: string;
  readonly nodeCount: number;
  readonly gpuUuids: readonly string[];
  readonly array: { readonly index: number; readonly size: number } | null;
  /** The checkpoint that it resumes from. null: none. */
  readonly resume: Resume | null;
  /** The job whose checkpoints these are: of a requeued job its predecessor, which has them where nobody named a place. */
  readonly checkpointJobId: JobId;
  /** Other jobs whose checkpoints may be in its directory: its user asked it to start from scratch where they saved. */
  readonly lineage: readonly JobId[];
  /** 1: as the user wrote it. */
  readonly batchScale: number;
  readonly lrScale: number;
  /** To be set aside before anything of the job runs: two readings have found them corrupt. */
  readonly quarantine: readonly CorruptCheckpoint[];
  /** Found corrupt once, by a look at them or by a program: to be read again. */
  readonly doubted: readonly CorruptCheckpoint[];
  /** The coordinator's proof that it gave this task to this node, to be sent again; empty: an older coordinator. */
  readonly proof: string;
  /** For TRACEPARENT. null: the job is in no trace that anybody records. Absent in the record of a task that an older agent wrote. */
  readonly traceparent?: string | null;
  /** What rank 0 looks at before the start. null: nothing. Absent in the record of a task that an older agent wrote. */
  readonly look?: LookOrder | null;
}
