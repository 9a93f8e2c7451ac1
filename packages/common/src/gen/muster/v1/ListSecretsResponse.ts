// Original file: proto/muster/v1/muster.proto

import type { Secret as _muster_v1_Secret, Secret__Output as _muster_v1_Secret__Output } from '../../muster/v1/Secret.ts';

export interface ListSecretsResponse {
  'secrets'?: (_muster_v1_Secret)[];
}

export interface ListSecretsResponse__Output {
  'secrets': (_muster_v1_Secret__Output)[];
}
