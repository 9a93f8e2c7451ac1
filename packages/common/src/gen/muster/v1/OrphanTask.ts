// Original file: proto/muster/v1/types.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';

export interface OrphanTask {
  'task'?: (_muster_v1_TaskRef | null);
  'name'?: (string);
  'gpuUuids'?: (string)[];
  'frozen'?: (boolean);
}

export interface OrphanTask__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'name': (string);
  'gpuUuids': (string)[];
  'frozen': (boolean);
}
