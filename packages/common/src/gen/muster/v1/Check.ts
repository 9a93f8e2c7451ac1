// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { PathCheck as _muster_v1_PathCheck, PathCheck__Output as _muster_v1_PathCheck__Output } from '../../muster/v1/PathCheck.ts';

export interface Check {
  'task'?: (_muster_v1_TaskRef | null);
  'check'?: (_muster_v1_PathCheck | null);
}

export interface Check__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'check': (_muster_v1_PathCheck__Output | null);
}
