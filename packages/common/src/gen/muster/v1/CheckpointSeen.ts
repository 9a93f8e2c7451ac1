// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Checkpoint as _muster_v1_Checkpoint, Checkpoint__Output as _muster_v1_Checkpoint__Output } from '../../muster/v1/Checkpoint.ts';

export interface CheckpointSeen {
  'task'?: (_muster_v1_TaskRef | null);
  'checkpoint'?: (_muster_v1_Checkpoint | null);
  'afterStop'?: (boolean);
  'shared'?: (boolean);
  'by'?: (string);
  'attempt'?: (number);
  'found'?: (boolean);
  '_by'?: "by";
  '_attempt'?: "attempt";
  '_found'?: "found";
}

export interface CheckpointSeen__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'checkpoint': (_muster_v1_Checkpoint__Output | null);
  'afterStop': (boolean);
  'shared': (boolean);
  'by'?: (string);
  'attempt'?: (number);
  'found'?: (boolean);
  '_by'?: "by";
  '_attempt'?: "attempt";
  '_found'?: "found";
}
