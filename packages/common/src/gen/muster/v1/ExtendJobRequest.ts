// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface ExtendJobRequest {
  'jobId'?: (string);
  'byMs'?: (number | string | Long);
}

export interface ExtendJobRequest__Output {
  'jobId': (string);
  'byMs': (number);
}
