// Original file: proto/muster/v1/muster.proto

import type { MetricSource as _muster_v1_MetricSource, MetricSource__Output as _muster_v1_MetricSource__Output } from '../../muster/v1/MetricSource.ts';

export interface MetricOrigin {
  'name'?: (string);
  'sources'?: (_muster_v1_MetricSource)[];
  'notes'?: (string)[];
}

export interface MetricOrigin__Output {
  'name': (string);
  'sources': (_muster_v1_MetricSource__Output)[];
  'notes': (string)[];
}
