/** What the tasks of a node are built on. */

import type { Endpoint, PathFindings, TaskFailure } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { GpuUsage } from '@muster/common/telemetry';
import type { HangSign, TrainingProgress } from '@muster/common/training';
import type { Cause, TaskReport } from '@muster/common/views';
import type { CheckpointMessage } from '../checkpoints/parts.ts';
import type { Checkpoints } from '../checkpoints/watcher.ts';
import type { Driver } from '../drivers/driver.ts';
import type { EndOfTask } from '../failure/taskFailure.ts';
import type { CheckpointDirs } from '../launch/checkpointDir.ts';
import type { TaskLeases } from '../leases/taskLeases.ts';
import type { NodeRendezvous } from '../rendezvous/rendezvous.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';
import type { TrainingSignMessage } from '../training/taskTraining.ts';
import type { NodeFacts } from './launch.ts';
import type { TaskRecords } from './records.ts';

/** "It is prepared; nothing runs." */
export interface PreparedMessage {
  readonly kind: 'prepared';
  readonly task: TaskRef;
  /** Of rank 0, should there be no other node to say how it is reached. null: another rank. */
  readonly master: { readonly addr: string; readonly port: number } | null;
  readonly endpoints: readonly Endpoint[];
  /** Answers the peers of this gang. null: it has none. */
  readonly testPort: number | null;
}

export type TaskMessage =
  | PreparedMessage
  | { readonly kind: 'checked'; readonly task: TaskRef; readonly findings: PathFindings }
  | CheckpointMessage
  | TrainingSignMessage
  | { readonly kind: 'report'; readonly report: TaskReport };

/** What the output of tasks tells of their training. */
export interface TrainingOfTasks {
  /** Where it is; null: its output told of none. */
  progress(task: TaskRef): TrainingProgress | null;
  /** null: it makes progress, or nobody can tell. */
  hang(task: TaskRef): HangSign | null;
  /** Nothing of it runs any more: where its training was, with the rest of its output read. null: nobody reads it. */
  finish(task: TaskRef): Promise<TrainingProgress | null> | null;
}

export interface ManagerParts {
  readonly records: Pick<TaskRecords, keyof TaskRecords>;
  readonly drivers: { readonly process: Driver; readonly docker: Driver };
  readonly node: NodeFacts;
  readonly checkpointDirs: CheckpointDirs;
  readonly checkpoints: Checkpoints;
  /** Why this agent could not look after the checkpoints of a job in that directory; null: it can. */
  readonly checkpointPlaceProblem: (root: string, changes: boolean) => Promise<string | null>;
  readonly training: TrainingOfTasks;
  readonly rendezvous: NodeRendezvous;
  readonly leases: TaskLeases;
  readonly nodeName: string;
  readonly bootId: string;
  /** The address that rank 0 on this node is reached at by itself. */
  readonly address: string;
  readonly wallMs: () => number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  /** Reads anew what `node.network` tells: an interface may have come up a moment ago. */
  readonly readNetwork: () => Promise<unknown>;
  /** Why these GPUs of this node are not to be used now. null: they may be. */
  readonly gpuProblem: (gpuUuids: readonly string[], abort: AbortSignal) => Promise<Cause | null>;
  /** What went wrong first in a task that has ended badly. @throws {Error} when the agent is closing */
  readonly failureOf: (end: EndOfTask, location: TaskLocation) => Promise<TaskFailure>;
  readonly log: Logger;
  /** Say something to the coordinator; dropped while there is no connection, because the next Hello says it all. */
  readonly send: (message: TaskMessage) => void;
  /** A task's output may be followed from here on, and ends at `size` once that is known. */
  readonly onOutput: (task: TaskRef, path: string, size: number | null) => void;
  /** What is known of the task's GPUs by now. */
  readonly gpuUsage: (task: TaskRef) => GpuUsage | null;
  /** Nothing more is to be read of a task's output. */
  readonly onRemoved: (task: TaskRef) => void;
}
