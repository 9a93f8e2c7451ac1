// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface QueryMetricsRequest {
  'jobId'?: (string);
  'name'?: (string);
  'sinceMs'?: (number | string | Long);
  'attempt'?: (number);
  'pointsMax'?: (number);
  'superseded'?: (boolean);
  'skip'?: (number | string | Long);
  'node'?: (string);
  'user'?: (string);
  'project'?: (string);
  'startTime'?: (string);
  'endTime'?: (string);
  'stepMs'?: (number | string | Long);
  'aggregation'?: (string);
  'by'?: (string);
  '_sinceMs'?: "sinceMs";
  '_attempt'?: "attempt";
  '_pointsMax'?: "pointsMax";
  '_node'?: "node";
  '_user'?: "user";
  '_project'?: "project";
  '_startTime'?: "startTime";
  '_endTime'?: "endTime";
  '_stepMs'?: "stepMs";
  '_aggregation'?: "aggregation";
  '_by'?: "by";
}

export interface QueryMetricsRequest__Output {
  'jobId': (string);
  'name': (string);
  'sinceMs'?: (number);
  'attempt'?: (number);
  'pointsMax'?: (number);
  'superseded': (boolean);
  'skip': (number);
  'node'?: (string);
  'user'?: (string);
  'project'?: (string);
  'startTime'?: (string);
  'endTime'?: (string);
  'stepMs'?: (number);
  'aggregation'?: (string);
  'by'?: (string);
  '_sinceMs'?: "sinceMs";
  '_attempt'?: "attempt";
  '_pointsMax'?: "pointsMax";
  '_node'?: "node";
  '_user'?: "user";
  '_project'?: "project";
  '_startTime'?: "startTime";
  '_endTime'?: "endTime";
  '_stepMs'?: "stepMs";
  '_aggregation'?: "aggregation";
  '_by'?: "by";
}
