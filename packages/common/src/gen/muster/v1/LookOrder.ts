// Original file: proto/muster/v1/agent.proto

import type { CheckpointIdentity as _muster_v1_CheckpointIdentity, CheckpointIdentity__Output as _muster_v1_CheckpointIdentity__Output } from '../../muster/v1/CheckpointIdentity.ts';
import type { Long } from '@grpc/proto-loader';

export interface LookOrder {
  'candidates'?: (_muster_v1_CheckpointIdentity)[];
  'stepMax'?: (number | string | Long);
  '_stepMax'?: "stepMax";
}

export interface LookOrder__Output {
  'candidates': (_muster_v1_CheckpointIdentity__Output)[];
  'stepMax'?: (number);
  '_stepMax'?: "stepMax";
}
