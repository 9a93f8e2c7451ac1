// Original file: proto/muster/v1/muster.proto

import type { Trial as _muster_v1_Trial, Trial__Output as _muster_v1_Trial__Output } from '../../muster/v1/Trial.ts';

export interface ListTrialsResponse {
  'trials'?: (_muster_v1_Trial)[];
  'more'?: (boolean);
}

export interface ListTrialsResponse__Output {
  'trials': (_muster_v1_Trial__Output)[];
  'more': (boolean);
}
