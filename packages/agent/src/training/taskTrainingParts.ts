/** What following the output of tasks needs from the agent around it. */
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TrainingRow, TrainingSign } from '@muster/common/training';
import type { Resume } from '@muster/common/views';
import type { Assignment } from '../taskFacts/assignment.ts';

export interface TaskTrainingParts {
  /** Tasks that run on this node. */
  readonly running: () => readonly TrainingTask[];
  /** What a task was offered to resume from, also when it has ended before anybody looked at its output. */
  readonly resumeOf: (task: TaskRef) => Resume | null;
  /** Its lease has ended, and the agent keeps it from running. */
  readonly isFrozen: (task: TaskRef) => boolean;
  readonly outputPathOf: (task: TaskRef) => string;
  readonly send: (message: TrainingSignMessage) => void;
  /** Takes every line of metrics, in the order of the output, again after a restart of the agent. */
  readonly rows: {
    add(task: TaskRef, row: TrainingRow): void;
    /** There will be no more. */
    ended(task: TaskRef, end: RowsEnd): void;
    /** So many bytes behind the newest row are not read. */
    skipped(task: TaskRef, bytes: number): void;
  };
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly log: Logger;
  /** Default: 250. */
  readonly lookIntervalMs?: number;
}

/** How the rows of a task end. */
export interface RowsEnd {
  /** The report of the end of the task says where its rows end. */
  readonly isReported: boolean;
  /** Rows may have followed, and cannot be read. */
  readonly isLost: boolean;
}

export interface TrainingTask {
  readonly task: TaskRef;
  readonly assignment: Assignment | null;
  readonly gpuUuids: readonly string[];
}

export interface TrainingSignMessage {
  readonly kind: 'trainingSign';
  readonly task: TaskRef;
  readonly sign: TrainingSign;
}
