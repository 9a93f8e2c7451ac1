// Original file: proto/muster/v1/agent.proto

import type { SecretValue as _muster_v1_SecretValue, SecretValue__Output as _muster_v1_SecretValue__Output } from '../../muster/v1/SecretValue.ts';

export interface ReadSecretsResponse {
  'secrets'?: (_muster_v1_SecretValue)[];
}

export interface ReadSecretsResponse__Output {
  'secrets': (_muster_v1_SecretValue__Output)[];
}
