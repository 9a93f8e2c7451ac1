// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface LogPiece {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'offset'?: (number | string | Long);
  'data'?: (Buffer | Uint8Array | string);
  'complete'?: (boolean);
}

export interface LogPiece__Output {
  'attempt': (number);
  'nodeRank': (number);
  'offset': (number);
  'data': (Buffer);
  'complete': (boolean);
}
