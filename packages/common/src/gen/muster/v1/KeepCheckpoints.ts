// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { CheckpointVersion as _muster_v1_CheckpointVersion, CheckpointVersion__Output as _muster_v1_CheckpointVersion__Output } from '../../muster/v1/CheckpointVersion.ts';
import type { Long } from '@grpc/proto-loader';

export interface KeepCheckpoints {
  'task'?: (_muster_v1_TaskRef | null);
  'held'?: (_muster_v1_CheckpointVersion)[];
  'decidedSavedAtMs'?: (number | string | Long);
}

export interface KeepCheckpoints__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'held': (_muster_v1_CheckpointVersion__Output)[];
  'decidedSavedAtMs': (number);
}
