// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface TriggerBlock {
  'cause'?: (string);
  'remedy'?: (string);
  'sinceMs'?: (number | string | Long);
}

export interface TriggerBlock__Output {
  'cause': (string);
  'remedy': (string);
  'sinceMs': (number);
}
