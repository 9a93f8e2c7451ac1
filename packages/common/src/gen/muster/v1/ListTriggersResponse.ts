// Original file: proto/muster/v1/muster.proto

import type { Trigger as _muster_v1_Trigger, Trigger__Output as _muster_v1_Trigger__Output } from '../../muster/v1/Trigger.ts';

export interface ListTriggersResponse {
  'triggers'?: (_muster_v1_Trigger)[];
}

export interface ListTriggersResponse__Output {
  'triggers': (_muster_v1_Trigger__Output)[];
}
