// Original file: proto/muster/v1/agent.proto

import type { FoundCheckpoint as _muster_v1_FoundCheckpoint, FoundCheckpoint__Output as _muster_v1_FoundCheckpoint__Output } from '../../muster/v1/FoundCheckpoint.ts';

export interface CheckpointLook {
  'found'?: (_muster_v1_FoundCheckpoint)[];
  'shared'?: (boolean);
  'problem'?: (string);
  'tookMs'?: (number);
  '_problem'?: "problem";
}

export interface CheckpointLook__Output {
  'found': (_muster_v1_FoundCheckpoint__Output)[];
  'shared': (boolean);
  'problem'?: (string);
  'tookMs': (number);
  '_problem'?: "problem";
}
