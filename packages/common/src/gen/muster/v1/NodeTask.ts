// Original file: proto/muster/v1/types.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Long } from '@grpc/proto-loader';

export interface NodeTask {
  'task'?: (_muster_v1_TaskRef | null);
  'name'?: (string);
  'gpus'?: (number);
  'cpus'?: (number | string);
  'stopAtMs'?: (number | string | Long);
  'stopping'?: (boolean);
  '_stopAtMs'?: "stopAtMs";
}

export interface NodeTask__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'name': (string);
  'gpus': (number);
  'cpus': (number);
  'stopAtMs'?: (number);
  'stopping': (boolean);
  '_stopAtMs'?: "stopAtMs";
}
