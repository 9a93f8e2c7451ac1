// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface WatchMetricsRequest {
  'jobId'?: (string);
  'name'?: (string);
  'attempt'?: (number);
  'node'?: (string);
  'user'?: (string);
  'project'?: (string);
  'follow'?: (boolean);
  'startTime'?: (string);
  'position'?: (string);
  'stepMs'?: (number | string | Long);
  'aggregation'?: (string);
  'by'?: (string);
  '_attempt'?: "attempt";
  '_node'?: "node";
  '_user'?: "user";
  '_project'?: "project";
  '_startTime'?: "startTime";
  '_position'?: "position";
  '_stepMs'?: "stepMs";
  '_aggregation'?: "aggregation";
  '_by'?: "by";
}

export interface WatchMetricsRequest__Output {
  'jobId': (string);
  'name': (string);
  'attempt'?: (number);
  'node'?: (string);
  'user'?: (string);
  'project'?: (string);
  'follow': (boolean);
  'startTime'?: (string);
  'position'?: (string);
  'stepMs'?: (number);
  'aggregation'?: (string);
  'by'?: (string);
  '_attempt'?: "attempt";
  '_node'?: "node";
  '_user'?: "user";
  '_project'?: "project";
  '_startTime'?: "startTime";
  '_position'?: "position";
  '_stepMs'?: "stepMs";
  '_aggregation'?: "aggregation";
  '_by'?: "by";
}
