// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface UserToken {
  'id'?: (string);
  'token'?: (string);
  'expiresAtMs'?: (number | string | Long);
}

export interface UserToken__Output {
  'id': (string);
  'token': (string);
  'expiresAtMs': (number);
}
