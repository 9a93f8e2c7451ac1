// Original file: proto/muster/v1/muster.proto

import type { MetricPoint as _muster_v1_MetricPoint, MetricPoint__Output as _muster_v1_MetricPoint__Output } from '../../muster/v1/MetricPoint.ts';

export interface MetricSeries {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'node'?: (string);
  'gpuUuid'?: (string);
  'points'?: (_muster_v1_MetricPoint)[];
  'jobId'?: (string);
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_jobId'?: "jobId";
}

export interface MetricSeries__Output {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'node': (string);
  'gpuUuid': (string);
  'points': (_muster_v1_MetricPoint__Output)[];
  'jobId'?: (string);
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_jobId'?: "jobId";
}
