// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { ChosenResume as _muster_v1_ChosenResume, ChosenResume__Output as _muster_v1_ChosenResume__Output } from '../../muster/v1/ChosenResume.ts';

export interface Start {
  'task'?: (_muster_v1_TaskRef | null);
  'masterAddr'?: (string);
  'masterPort'?: (number);
  'addresses'?: (string)[];
  'leaseMs'?: (number);
  'resume'?: (_muster_v1_ChosenResume | null);
  '_leaseMs'?: "leaseMs";
}

export interface Start__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'masterAddr': (string);
  'masterPort': (number);
  'addresses': (string)[];
  'leaseMs'?: (number);
  'resume': (_muster_v1_ChosenResume__Output | null);
  '_leaseMs'?: "leaseMs";
}
