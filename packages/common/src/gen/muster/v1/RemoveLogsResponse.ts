// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface RemoveLogsResponse {
  'jobId'?: (string);
  'bytesFreed'?: (number | string | Long);
}

export interface RemoveLogsResponse__Output {
  'jobId': (string);
  'bytesFreed': (number);
}
