// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { ReceivedRows as _muster_v1_ReceivedRows, ReceivedRows__Output as _muster_v1_ReceivedRows__Output } from '../../muster/v1/ReceivedRows.ts';
import type { Long } from '@grpc/proto-loader';

export interface RowUploadAck {
  'task'?: (_muster_v1_TaskRef | null);
  'position'?: (number | string | Long);
  'complete'?: (boolean);
  'retryAfterMs'?: (number);
  'received'?: (_muster_v1_ReceivedRows | null);
  'tooFast'?: (boolean);
}

export interface RowUploadAck__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'position': (number);
  'complete': (boolean);
  'retryAfterMs': (number);
  'received': (_muster_v1_ReceivedRows__Output | null);
  'tooFast': (boolean);
}
