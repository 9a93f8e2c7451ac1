// Original file: proto/muster/v1/muster.proto

import type { MetricSeries as _muster_v1_MetricSeries, MetricSeries__Output as _muster_v1_MetricSeries__Output } from '../../muster/v1/MetricSeries.ts';

export interface MetricUpdate {
  'series'?: (_muster_v1_MetricSeries)[];
  'unit'?: (string);
  'position'?: (string);
}

export interface MetricUpdate__Output {
  'series': (_muster_v1_MetricSeries__Output)[];
  'unit': (string);
  'position': (string);
}
