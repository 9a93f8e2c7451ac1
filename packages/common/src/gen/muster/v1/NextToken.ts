// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface NextToken {
  'token'?: (string);
  'term'?: (number | string | Long);
  'termProof'?: (string);
  'clusterId'?: (string);
  'current'?: (string);
  '_current'?: "current";
}

export interface NextToken__Output {
  'token': (string);
  'term': (number);
  'termProof': (string);
  'clusterId': (string);
  'current'?: (string);
  '_current'?: "current";
}
