// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { TrainingSign as _muster_v1_TrainingSign, TrainingSign__Output as _muster_v1_TrainingSign__Output } from '../../muster/v1/TrainingSign.ts';

export interface TrainingSignSeen {
  'task'?: (_muster_v1_TaskRef | null);
  'sign'?: (_muster_v1_TrainingSign | null);
}

export interface TrainingSignSeen__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'sign': (_muster_v1_TrainingSign__Output | null);
}
