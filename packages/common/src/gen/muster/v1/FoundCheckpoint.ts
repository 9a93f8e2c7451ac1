// Original file: proto/muster/v1/agent.proto

import type { Checkpoint as _muster_v1_Checkpoint, Checkpoint__Output as _muster_v1_Checkpoint__Output } from '../../muster/v1/Checkpoint.ts';

export interface FoundCheckpoint {
  'checkpoint'?: (_muster_v1_Checkpoint | null);
  'by'?: (string);
  'attempt'?: (number);
  '_by'?: "by";
  '_attempt'?: "attempt";
}

export interface FoundCheckpoint__Output {
  'checkpoint': (_muster_v1_Checkpoint__Output | null);
  'by'?: (string);
  'attempt'?: (number);
  '_by'?: "by";
  '_attempt'?: "attempt";
}
