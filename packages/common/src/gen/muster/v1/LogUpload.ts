// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Long } from '@grpc/proto-loader';

export interface LogUpload {
  'task'?: (_muster_v1_TaskRef | null);
  'offset'?: (number | string | Long);
  'data'?: (Buffer | Uint8Array | string);
  'complete'?: (boolean);
  'followsGap'?: (boolean);
  'heldBack'?: (boolean);
  'waits'?: (boolean);
}

export interface LogUpload__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'offset': (number);
  'data': (Buffer);
  'complete': (boolean);
  'followsGap': (boolean);
  'heldBack': (boolean);
  'waits': (boolean);
}
