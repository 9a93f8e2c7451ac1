// Original file: proto/muster/v1/types.proto

import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from '../../muster/v1/Cause.ts';

export interface ExcludedNode {
  'node'?: (string);
  'cause'?: (_muster_v1_Cause | null);
}

export interface ExcludedNode__Output {
  'node': (string);
  'cause': (_muster_v1_Cause__Output | null);
}
