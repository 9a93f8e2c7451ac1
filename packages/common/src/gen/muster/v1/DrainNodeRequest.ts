// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface DrainNodeRequest {
  'node'?: (string);
  'reason'?: (string);
  'deadlineMs'?: (number | string | Long);
  '_deadlineMs'?: "deadlineMs";
}

export interface DrainNodeRequest__Output {
  'node': (string);
  'reason': (string);
  'deadlineMs'?: (number);
  '_deadlineMs'?: "deadlineMs";
}
