// Original file: proto/muster/v1/muster.proto

import type { User as _muster_v1_User, User__Output as _muster_v1_User__Output } from '../../muster/v1/User.ts';

export interface ListUsersResponse {
  'users'?: (_muster_v1_User)[];
}

export interface ListUsersResponse__Output {
  'users': (_muster_v1_User__Output)[];
}
