// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Endpoint as _muster_v1_Endpoint, Endpoint__Output as _muster_v1_Endpoint__Output } from '../../muster/v1/Endpoint.ts';

export interface Prepared {
  'task'?: (_muster_v1_TaskRef | null);
  'masterAddr'?: (string);
  'masterPort'?: (number);
  'endpoints'?: (_muster_v1_Endpoint)[];
  'testPort'?: (number);
}

export interface Prepared__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'masterAddr': (string);
  'masterPort': (number);
  'endpoints': (_muster_v1_Endpoint__Output)[];
  'testPort': (number);
}
