// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface Drain {
  'reason'?: (string);
  'sinceMs'?: (number | string | Long);
  'deadlineMs'?: (number | string | Long);
  '_deadlineMs'?: "deadlineMs";
}

export interface Drain__Output {
  'reason': (string);
  'sinceMs': (number);
  'deadlineMs'?: (number);
  '_deadlineMs'?: "deadlineMs";
}
