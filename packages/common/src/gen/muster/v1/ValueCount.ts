// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface ValueCount {
  'metric'?: (string);
  'rows'?: (number | string | Long);
  'notFinite'?: (number | string | Long);
}

export interface ValueCount__Output {
  'metric': (string);
  'rows': (number);
  'notFinite': (number);
}
