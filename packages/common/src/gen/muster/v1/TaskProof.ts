// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';

export interface TaskProof {
  'task'?: (_muster_v1_TaskRef | null);
  'proof'?: (string);
}

export interface TaskProof__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'proof': (string);
}
