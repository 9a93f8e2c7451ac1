// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface PairBandwidth {
  'nodeRank'?: (number);
  'bytesPerS'?: (number | string | Long);
}

export interface PairBandwidth__Output {
  'nodeRank': (number);
  'bytesPerS': (number);
}
