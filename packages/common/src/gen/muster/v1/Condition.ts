// Original file: proto/muster/v1/types.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Long } from '@grpc/proto-loader';

export interface Condition {
  'kind'?: (string);
  'gpuUuid'?: (string);
  'severity'?: (string);
  'action'?: (string);
  'message'?: (string);
  'evidence'?: (string);
  'sinceMs'?: (number | string | Long);
  'lastSeenAtMs'?: (number | string | Long);
  'count'?: (number);
  'clears'?: (string);
  'task'?: (_muster_v1_TaskRef | null);
  '_gpuUuid'?: "gpuUuid";
}

export interface Condition__Output {
  'kind': (string);
  'gpuUuid'?: (string);
  'severity': (string);
  'action': (string);
  'message': (string);
  'evidence': (string);
  'sinceMs': (number);
  'lastSeenAtMs': (number);
  'count': (number);
  'clears': (string);
  'task': (_muster_v1_TaskRef__Output | null);
  '_gpuUuid'?: "gpuUuid";
}
