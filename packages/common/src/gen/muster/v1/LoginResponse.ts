// Original file: proto/muster/v1/muster.proto

import type { User as _muster_v1_User, User__Output as _muster_v1_User__Output } from '../../muster/v1/User.ts';
import type { Long } from '@grpc/proto-loader';

export interface LoginResponse {
  'user'?: (_muster_v1_User | null);
  'clusterId'?: (string);
  'expiresAtMs'?: (number | string | Long);
}

export interface LoginResponse__Output {
  'user': (_muster_v1_User__Output | null);
  'clusterId': (string);
  'expiresAtMs': (number);
}
