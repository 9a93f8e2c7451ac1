// Original file: proto/muster/v1/types.proto

import type { TaskState as _muster_v1_TaskState, TaskState__Output as _muster_v1_TaskState__Output } from '../../muster/v1/TaskState.ts';
import type { TaskExit as _muster_v1_TaskExit, TaskExit__Output as _muster_v1_TaskExit__Output } from '../../muster/v1/TaskExit.ts';

export interface Task {
  'nodeRank'?: (number);
  'node'?: (string);
  'gpuUuids'?: (string)[];
  'state'?: (_muster_v1_TaskState);
  'exit'?: (_muster_v1_TaskExit | null);
  'frozen'?: (boolean);
  'doing'?: (string);
  'address'?: (string);
  'gpuIndexes'?: (number)[];
  '_doing'?: "doing";
  '_address'?: "address";
}

export interface Task__Output {
  'nodeRank': (number);
  'node': (string);
  'gpuUuids': (string)[];
  'state': (_muster_v1_TaskState__Output);
  'exit': (_muster_v1_TaskExit__Output | null);
  'frozen': (boolean);
  'doing'?: (string);
  'address'?: (string);
  'gpuIndexes': (number)[];
  '_doing'?: "doing";
  '_address'?: "address";
}
