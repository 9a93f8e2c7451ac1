// Original file: proto/muster/v1/muster.proto

import type { Credential as _muster_v1_Credential, Credential__Output as _muster_v1_Credential__Output } from '../../muster/v1/Credential.ts';

export interface ListCredentialsResponse {
  'credentials'?: (_muster_v1_Credential)[];
}

export interface ListCredentialsResponse__Output {
  'credentials': (_muster_v1_Credential__Output)[];
}
