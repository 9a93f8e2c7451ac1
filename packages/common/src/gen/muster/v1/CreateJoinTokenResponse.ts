// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface CreateJoinTokenResponse {
  'token'?: (string);
  'expiresAtMs'?: (number | string | Long);
}

export interface CreateJoinTokenResponse__Output {
  'token': (string);
  'expiresAtMs': (number);
}
