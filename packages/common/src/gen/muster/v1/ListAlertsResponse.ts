// Original file: proto/muster/v1/muster.proto

import type { Alert as _muster_v1_Alert, Alert__Output as _muster_v1_Alert__Output } from '../../muster/v1/Alert.ts';

export interface ListAlertsResponse {
  'alerts'?: (_muster_v1_Alert)[];
}

export interface ListAlertsResponse__Output {
  'alerts': (_muster_v1_Alert__Output)[];
}
