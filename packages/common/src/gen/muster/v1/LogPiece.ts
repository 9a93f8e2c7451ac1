// Original file: proto/muster/v1/muster.proto

import type { MissingOutput as _muster_v1_MissingOutput, MissingOutput__Output as _muster_v1_MissingOutput__Output } from '../../muster/v1/MissingOutput.ts';
import type { Long } from '@grpc/proto-loader';

export interface LogPiece {
  'attempt'?: (number);
  'nodeRank'?: (number);
  'offset'?: (number | string | Long);
  'data'?: (Buffer | Uint8Array | string);
  'complete'?: (boolean);
  'missing'?: (_muster_v1_MissingOutput | null);
}

export interface LogPiece__Output {
  'attempt': (number);
  'nodeRank': (number);
  'offset': (number);
  'data': (Buffer);
  'complete': (boolean);
  'missing': (_muster_v1_MissingOutput__Output | null);
}
