// Original file: proto/muster/v1/muster.proto

import type { MetricPoint as _muster_v1_MetricPoint, MetricPoint__Output as _muster_v1_MetricPoint__Output } from '../../muster/v1/MetricPoint.ts';
import type { Long } from '@grpc/proto-loader';

export interface MetricSeries {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'node'?: (string);
  'gpuUuid'?: (string);
  'points'?: (_muster_v1_MetricPoint)[];
  'jobId'?: (string);
  'omitted'?: (number | string | Long);
  'mergedPoints'?: (number | string | Long);
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_jobId'?: "jobId";
  '_omitted'?: "omitted";
  '_mergedPoints'?: "mergedPoints";
}

export interface MetricSeries__Output {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'node': (string);
  'gpuUuid': (string);
  'points': (_muster_v1_MetricPoint__Output)[];
  'jobId'?: (string);
  'omitted'?: (number);
  'mergedPoints'?: (number);
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_jobId'?: "jobId";
  '_omitted'?: "omitted";
  '_mergedPoints'?: "mergedPoints";
}
