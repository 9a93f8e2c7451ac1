// Original file: proto/muster/v1/muster.proto

import type { MetricBucket as _muster_v1_MetricBucket, MetricBucket__Output as _muster_v1_MetricBucket__Output } from '../../muster/v1/MetricBucket.ts';
import type { Long } from '@grpc/proto-loader';

export interface MetricPoint {
  'atMs'?: (number | string | Long);
  'value'?: (number | string);
  'step'?: (number | string);
  'notFinite'?: (number);
  'bucket'?: (_muster_v1_MetricBucket | null);
  '_value'?: "value";
  '_step'?: "step";
  '_notFinite'?: "notFinite";
}

export interface MetricPoint__Output {
  'atMs': (number);
  'value'?: (number);
  'step'?: (number);
  'notFinite'?: (number);
  'bucket': (_muster_v1_MetricBucket__Output | null);
  '_value'?: "value";
  '_step'?: "step";
  '_notFinite'?: "notFinite";
}
