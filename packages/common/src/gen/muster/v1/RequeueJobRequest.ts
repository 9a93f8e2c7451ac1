// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface RequeueJobRequest {
  'jobId'?: (string);
  'requestId'?: (string);
  'fromStep'?: (number | string | Long);
  'fromStart'?: (boolean);
  'specJson'?: (string);
  'force'?: (boolean);
  '_fromStep'?: "fromStep";
  '_specJson'?: "specJson";
}

export interface RequeueJobRequest__Output {
  'jobId': (string);
  'requestId': (string);
  'fromStep'?: (number);
  'fromStart': (boolean);
  'specJson'?: (string);
  'force': (boolean);
  '_fromStep'?: "fromStep";
  '_specJson'?: "specJson";
}
