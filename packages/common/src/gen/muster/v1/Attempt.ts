// Original file: proto/muster/v1/types.proto

import type { AttemptState as _muster_v1_AttemptState, AttemptState__Output as _muster_v1_AttemptState__Output } from '../../muster/v1/AttemptState.ts';
import type { Task as _muster_v1_Task, Task__Output as _muster_v1_Task__Output } from '../../muster/v1/Task.ts';
import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from '../../muster/v1/Cause.ts';
import type { GpuUsage as _muster_v1_GpuUsage, GpuUsage__Output as _muster_v1_GpuUsage__Output } from '../../muster/v1/GpuUsage.ts';
import type { Resume as _muster_v1_Resume, Resume__Output as _muster_v1_Resume__Output } from '../../muster/v1/Resume.ts';
import type { AttemptSign as _muster_v1_AttemptSign, AttemptSign__Output as _muster_v1_AttemptSign__Output } from '../../muster/v1/AttemptSign.ts';
import type { Long } from '@grpc/proto-loader';

export interface Attempt {
  'number'?: (number);
  'state'?: (_muster_v1_AttemptState);
  'tasks'?: (_muster_v1_Task)[];
  'cause'?: (_muster_v1_Cause | null);
  'allocatedAtMs'?: (number | string | Long);
  'runningAtMs'?: (number | string | Long);
  'endedAtMs'?: (number | string | Long);
  'masterAddr'?: (string);
  'masterPort'?: (number);
  'gpuUsage'?: (_muster_v1_GpuUsage | null);
  'resume'?: (_muster_v1_Resume | null);
  'leaseMs'?: (number | string | Long);
  'signs'?: (_muster_v1_AttemptSign)[];
  'hungAtMs'?: (number | string | Long);
  'hangs'?: (boolean);
  'firstStepAtMs'?: (number | string | Long);
  '_runningAtMs'?: "runningAtMs";
  '_endedAtMs'?: "endedAtMs";
  '_masterAddr'?: "masterAddr";
  '_masterPort'?: "masterPort";
  '_leaseMs'?: "leaseMs";
  '_hungAtMs'?: "hungAtMs";
  '_firstStepAtMs'?: "firstStepAtMs";
}

export interface Attempt__Output {
  'number': (number);
  'state': (_muster_v1_AttemptState__Output);
  'tasks': (_muster_v1_Task__Output)[];
  'cause': (_muster_v1_Cause__Output | null);
  'allocatedAtMs': (number);
  'runningAtMs'?: (number);
  'endedAtMs'?: (number);
  'masterAddr'?: (string);
  'masterPort'?: (number);
  'gpuUsage': (_muster_v1_GpuUsage__Output | null);
  'resume': (_muster_v1_Resume__Output | null);
  'leaseMs'?: (number);
  'signs': (_muster_v1_AttemptSign__Output)[];
  'hungAtMs'?: (number);
  'hangs': (boolean);
  'firstStepAtMs'?: (number);
  '_runningAtMs'?: "runningAtMs";
  '_endedAtMs'?: "endedAtMs";
  '_masterAddr'?: "masterAddr";
  '_masterPort'?: "masterPort";
  '_leaseMs'?: "leaseMs";
  '_hungAtMs'?: "hungAtMs";
  '_firstStepAtMs'?: "firstStepAtMs";
}
