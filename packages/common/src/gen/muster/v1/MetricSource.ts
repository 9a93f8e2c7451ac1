// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface MetricSource {
  'source'?: (string);
  'fromMs'?: (number | string | Long);
  'toMs'?: (number | string | Long);
}

export interface MetricSource__Output {
  'source': (string);
  'fromMs': (number);
  'toMs': (number);
}
