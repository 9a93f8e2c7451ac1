// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface ExtendJobRequest {
  'jobId'?: (string);
  'byMs'?: (number | string | Long);
  'requestId'?: (string);
  '_requestId'?: "requestId";
}

export interface ExtendJobRequest__Output {
  'jobId': (string);
  'byMs': (number);
  'requestId'?: (string);
  '_requestId'?: "requestId";
}
