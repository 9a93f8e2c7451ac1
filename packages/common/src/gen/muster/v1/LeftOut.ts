// Original file: proto/muster/v1/types.proto

import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from '../../muster/v1/Cause.ts';

export interface LeftOut {
  'node'?: (string);
  'cause'?: (_muster_v1_Cause | null);
}

export interface LeftOut__Output {
  'node': (string);
  'cause': (_muster_v1_Cause__Output | null);
}
