// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';

export interface Start {
  'task'?: (_muster_v1_TaskRef | null);
  'masterAddr'?: (string);
  'masterPort'?: (number);
  'addresses'?: (string)[];
  'leaseMs'?: (number);
  '_leaseMs'?: "leaseMs";
}

export interface Start__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'masterAddr': (string);
  'masterPort': (number);
  'addresses': (string)[];
  'leaseMs'?: (number);
  '_leaseMs'?: "leaseMs";
}
