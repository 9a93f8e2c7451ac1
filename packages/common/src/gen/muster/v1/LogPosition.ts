// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface LogPosition {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'offset'?: (number | string | Long);
}

export interface LogPosition__Output {
  'attempt': (number);
  'nodeRank': (number);
  'offset': (number);
}
