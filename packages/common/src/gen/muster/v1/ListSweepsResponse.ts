// Original file: proto/muster/v1/muster.proto

import type { Sweep as _muster_v1_Sweep, Sweep__Output as _muster_v1_Sweep__Output } from '../../muster/v1/Sweep.ts';

export interface ListSweepsResponse {
  'sweeps'?: (_muster_v1_Sweep)[];
  'more'?: (boolean);
}

export interface ListSweepsResponse__Output {
  'sweeps': (_muster_v1_Sweep__Output)[];
  'more': (boolean);
}
