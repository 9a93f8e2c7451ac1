// Original file: proto/muster/v1/types.proto

import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from '../../muster/v1/Cause.ts';
import type { GpuUsage as _muster_v1_GpuUsage, GpuUsage__Output as _muster_v1_GpuUsage__Output } from '../../muster/v1/GpuUsage.ts';
import type { TaskFailure as _muster_v1_TaskFailure, TaskFailure__Output as _muster_v1_TaskFailure__Output } from '../../muster/v1/TaskFailure.ts';
import type { TrainingProgress as _muster_v1_TrainingProgress, TrainingProgress__Output as _muster_v1_TrainingProgress__Output } from '../../muster/v1/TrainingProgress.ts';
import type { StoredArtifact as _muster_v1_StoredArtifact, StoredArtifact__Output as _muster_v1_StoredArtifact__Output } from '../../muster/v1/StoredArtifact.ts';
import type { Long } from '@grpc/proto-loader';

export interface TaskExit {
  'exitCode'?: (number);
  'signal'?: (string);
  'oomKilled'?: (boolean);
  'finishedAtMs'?: (number | string | Long);
  'statusLost'?: (boolean);
  'startError'?: (_muster_v1_Cause | null);
  'logBytes'?: (number | string | Long);
  'gpuUsage'?: (_muster_v1_GpuUsage | null);
  'failure'?: (_muster_v1_TaskFailure | null);
  'training'?: (_muster_v1_TrainingProgress | null);
  'artifacts'?: (_muster_v1_StoredArtifact)[];
  'rowsEnd'?: (number | string | Long);
  '_exitCode'?: "exitCode";
  '_signal'?: "signal";
  '_finishedAtMs'?: "finishedAtMs";
  '_rowsEnd'?: "rowsEnd";
}

export interface TaskExit__Output {
  'exitCode'?: (number);
  'signal'?: (string);
  'oomKilled': (boolean);
  'finishedAtMs'?: (number);
  'statusLost': (boolean);
  'startError': (_muster_v1_Cause__Output | null);
  'logBytes': (number);
  'gpuUsage': (_muster_v1_GpuUsage__Output | null);
  'failure': (_muster_v1_TaskFailure__Output | null);
  'training': (_muster_v1_TrainingProgress__Output | null);
  'artifacts': (_muster_v1_StoredArtifact__Output)[];
  'rowsEnd'?: (number);
  '_exitCode'?: "exitCode";
  '_signal'?: "signal";
  '_finishedAtMs'?: "finishedAtMs";
  '_rowsEnd'?: "rowsEnd";
}
