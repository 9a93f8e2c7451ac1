/** What watching checkpoints is built on. */

import { join } from 'node:path';
import type { NamePattern } from '@muster/checkpoints/namePattern';
import type { Verification } from '@muster/checkpoints/verification';
import type { VerifierOrder } from '@muster/checkpoints/verifierProcess';
import type { CheckpointSeen, KeptCheckpoints } from '@muster/common/checkpoints';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { JobSpec } from '@muster/common/spec/types';
import type { Mount } from '../host/mounts.ts';
import type { CheckpointDirs } from '../launch/checkpointDir.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { Beginning } from './beginning.ts';
import type { DirectoryProblem } from './directoryProblems.ts';

export interface CheckpointMessage extends CheckpointSeen {
  readonly kind: 'checkpoint';
}

export interface WatcherParts {
  readonly dirs: CheckpointDirs;
  /** In a process of its own. Rejects with the signal's reason. */
  readonly verify: (order: VerifierOrder, signal: AbortSignal) => Promise<Verification>;
  /** What the task's output contained around that step, by canonical name. @param step null: now */
  readonly metricsAt: (task: TaskRef, step: number | null) => Readonly<Record<string, number>>;
  /** What is mounted by now. */
  readonly mounts: () => readonly Mount[];
  readonly nodeName: string;
  /** Say something to the coordinator; dropped while there is no connection. */
  readonly send: (message: CheckpointMessage) => void;
  /** Something of a checkpoint was written. */
  readonly onProgress: (task: TaskRef) => void;
  readonly onTrainingComplete: (task: TaskRef) => void;
  /** Of all tasks the gravest, when that is another one; null: nothing is wrong with any directory. */
  readonly onProblem: (problem: DirectoryProblem | null) => void;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
  readonly log: Logger;
}

/** Reads checkpoints. The build puts it beside the bundle; in the source tree it is a package's. */
export const verifierProgram = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, '../../../checkpoints/src/verifier/main.ts')
  : join(import.meta.dirname, 'checkpoint-verifier.mjs');

/** The directory in which a job saves, as this agent finds it. */
export interface SavePlace {
  readonly spec: JobSpec;
  readonly root: string;
  /** null: the usual names. */
  readonly pattern: NamePattern | null;
}

/** A task whose checkpoints are looked at. */
export interface CheckpointedTask {
  readonly task: TaskRef;
  readonly assignment: Assignment;
  readonly spec: JobSpec;
  /** The directory as this agent finds it. */
  readonly root: string;
  /** null: the usual names. */
  readonly pattern: NamePattern | null;
  /** Wall clock. */
  readonly startedAtMs: number;
  /** What this agent has found there before the attempt began. null: an earlier agent has prepared it, or it could not be read. */
  readonly beginning: Beginning | null;
  /** What the coordinator has said last of those that evaluations need. null: nothing. */
  readonly kept: () => KeptCheckpoints | null;
}
