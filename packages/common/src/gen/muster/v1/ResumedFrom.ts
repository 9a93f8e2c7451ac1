// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface ResumedFrom {
  'jobId'?: (string);
  'name'?: (string);
  'step'?: (number | string | Long);
  '_jobId'?: "jobId";
  '_step'?: "step";
}

export interface ResumedFrom__Output {
  'jobId'?: (string);
  'name': (string);
  'step'?: (number);
  '_jobId'?: "jobId";
  '_step'?: "step";
}
