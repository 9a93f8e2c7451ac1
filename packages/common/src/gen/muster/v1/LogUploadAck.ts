// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Long } from '@grpc/proto-loader';

export interface LogUploadAck {
  'task'?: (_muster_v1_TaskRef | null);
  'nextOffset'?: (number | string | Long);
  'complete'?: (boolean);
  'retryAfterMs'?: (number);
  'tailBytes'?: (number | string | Long);
}

export interface LogUploadAck__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'nextOffset': (number);
  'complete': (boolean);
  'retryAfterMs': (number);
  'tailBytes': (number);
}
