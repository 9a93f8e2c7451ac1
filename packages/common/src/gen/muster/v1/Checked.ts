// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { PathFindings as _muster_v1_PathFindings, PathFindings__Output as _muster_v1_PathFindings__Output } from '../../muster/v1/PathFindings.ts';

export interface Checked {
  'task'?: (_muster_v1_TaskRef | null);
  'findings'?: (_muster_v1_PathFindings | null);
}

export interface Checked__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'findings': (_muster_v1_PathFindings__Output | null);
}
