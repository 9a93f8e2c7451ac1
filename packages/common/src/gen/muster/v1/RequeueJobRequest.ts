// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface RequeueJobRequest {
  'jobId'?: (string);
  'requestId'?: (string);
  'fromStep'?: (number | string | Long);
  'fromStart'?: (boolean);
  'specJson'?: (string);
  'force'?: (boolean);
  'fromName'?: (string);
  '_fromStep'?: "fromStep";
  '_specJson'?: "specJson";
  '_fromName'?: "fromName";
}

export interface RequeueJobRequest__Output {
  'jobId': (string);
  'requestId': (string);
  'fromStep'?: (number);
  'fromStart': (boolean);
  'specJson'?: (string);
  'force': (boolean);
  'fromName'?: (string);
  '_fromStep'?: "fromStep";
  '_specJson'?: "specJson";
  '_fromName'?: "fromName";
}
