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
  '_sinceMs'?: "sinceMs";
  '_attempt'?: "attempt";
  '_pointsMax'?: "pointsMax";
}

export interface QueryMetricsRequest__Output {
  'jobId': (string);
  'name': (string);
  'sinceMs'?: (number);
  'attempt'?: (number);
  'pointsMax'?: (number);
  'superseded': (boolean);
  'skip': (number);
  '_sinceMs'?: "sinceMs";
  '_attempt'?: "attempt";
  '_pointsMax'?: "pointsMax";
}
