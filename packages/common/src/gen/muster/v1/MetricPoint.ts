// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface MetricPoint {
  'atMs'?: (number | string | Long);
  'value'?: (number | string);
  '_value'?: "value";
}

export interface MetricPoint__Output {
  'atMs': (number);
  'value'?: (number);
  '_value'?: "value";
}
