// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { TaskState as _muster_v1_TaskState, TaskState__Output as _muster_v1_TaskState__Output } from '../../muster/v1/TaskState.ts';
import type { TaskExit as _muster_v1_TaskExit, TaskExit__Output as _muster_v1_TaskExit__Output } from '../../muster/v1/TaskExit.ts';
import type { TrainingProgress as _muster_v1_TrainingProgress, TrainingProgress__Output as _muster_v1_TrainingProgress__Output } from '../../muster/v1/TrainingProgress.ts';
import type { HangSign as _muster_v1_HangSign, HangSign__Output as _muster_v1_HangSign__Output } from '../../muster/v1/HangSign.ts';
import type { Long } from '@grpc/proto-loader';

export interface TaskReport {
  'task'?: (_muster_v1_TaskRef | null);
  'state'?: (_muster_v1_TaskState);
  'exit'?: (_muster_v1_TaskExit | null);
  'startedAtMs'?: (number | string | Long);
  'runningForMs'?: (number | string | Long);
  'frozen'?: (boolean);
  'doing'?: (string);
  'trainingComplete'?: (boolean);
  'training'?: (_muster_v1_TrainingProgress | null);
  'hang'?: (_muster_v1_HangSign | null);
  'gpuUuids'?: (string)[];
  'jobName'?: (string);
  'startedBoottimeMs'?: (number | string | Long);
  'endedBoottimeMs'?: (number | string | Long);
  '_startedAtMs'?: "startedAtMs";
  '_runningForMs'?: "runningForMs";
  '_doing'?: "doing";
  '_startedBoottimeMs'?: "startedBoottimeMs";
  '_endedBoottimeMs'?: "endedBoottimeMs";
}

export interface TaskReport__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'state': (_muster_v1_TaskState__Output);
  'exit': (_muster_v1_TaskExit__Output | null);
  'startedAtMs'?: (number);
  'runningForMs'?: (number);
  'frozen': (boolean);
  'doing'?: (string);
  'trainingComplete': (boolean);
  'training': (_muster_v1_TrainingProgress__Output | null);
  'hang': (_muster_v1_HangSign__Output | null);
  'gpuUuids': (string)[];
  'jobName': (string);
  'startedBoottimeMs'?: (number);
  'endedBoottimeMs'?: (number);
  '_startedAtMs'?: "startedAtMs";
  '_runningForMs'?: "runningForMs";
  '_doing'?: "doing";
  '_startedBoottimeMs'?: "startedBoottimeMs";
  '_endedBoottimeMs'?: "endedBoottimeMs";
}
