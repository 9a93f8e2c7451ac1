/** What the tasks of a node send to the coordinator. */

import type { CheckpointLook } from '@muster/common/checkpoints';
import type { Endpoint, PathFindings } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import type { CheckpointMessage } from '../checkpoints/parts.ts';
import type { TrainingSignMessage } from '../training/taskTrainingParts.ts';

/** The task is prepared, and nothing of it runs. */
export interface PreparedMessage {
  readonly kind: 'prepared';
  readonly task: TaskRef;
  /** Where rank 0 is reached when no other node says how. null: the task has another rank. */
  readonly master: { readonly addr: string; readonly port: number } | null;
  readonly endpoints: readonly Endpoint[];
  /** The port that answers the peers of this gang. null: there is none. */
  readonly testPort: number | null;
  /** What is in the directory of its checkpoints. null: nobody asked for that. */
  readonly look: CheckpointLook | null;
}

export type TaskMessage =
  | PreparedMessage
  | { readonly kind: 'checked'; readonly task: TaskRef; readonly findings: PathFindings }
  | CheckpointMessage
  | TrainingSignMessage
  | { readonly kind: 'report'; readonly report: TaskReport };
