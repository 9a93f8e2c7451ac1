// Original file: proto/muster/v1/muster.proto

import type { MetricSeries as _muster_v1_MetricSeries, MetricSeries__Output as _muster_v1_MetricSeries__Output } from '../../muster/v1/MetricSeries.ts';
import type { MetricOrigin as _muster_v1_MetricOrigin, MetricOrigin__Output as _muster_v1_MetricOrigin__Output } from '../../muster/v1/MetricOrigin.ts';
import type { Long } from '@grpc/proto-loader';

export interface QueryMetricsResponse {
  'series'?: (_muster_v1_MetricSeries)[];
  'unit'?: (string);
  'nextSkip'?: (number | string | Long);
  'thinned'?: (boolean);
  'origin'?: (_muster_v1_MetricOrigin | null);
  '_nextSkip'?: "nextSkip";
  '_thinned'?: "thinned";
}

export interface QueryMetricsResponse__Output {
  'series': (_muster_v1_MetricSeries__Output)[];
  'unit': (string);
  'nextSkip'?: (number);
  'thinned'?: (boolean);
  'origin': (_muster_v1_MetricOrigin__Output | null);
  '_nextSkip'?: "nextSkip";
  '_thinned'?: "thinned";
}
