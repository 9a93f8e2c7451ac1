// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface SummarizeTrainingRequest {
  'jobId'?: (string);
  'sinceMs'?: (number | string | Long);
  'attempt'?: (number);
  '_sinceMs'?: "sinceMs";
  '_attempt'?: "attempt";
}

export interface SummarizeTrainingRequest__Output {
  'jobId': (string);
  'sinceMs'?: (number);
  'attempt'?: (number);
  '_sinceMs'?: "sinceMs";
  '_attempt'?: "attempt";
}
