// Original file: proto/muster/v1/agent.proto

import type { Master as _muster_v1_Master, Master__Output as _muster_v1_Master__Output } from '../../muster/v1/Master.ts';

export interface Preflight {
  'master'?: (_muster_v1_Master | null);
  'timeoutMs'?: (number);
}

export interface Preflight__Output {
  'master': (_muster_v1_Master__Output | null);
  'timeoutMs': (number);
}
