// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface LoginCode {
  'code'?: (string);
  'expiresAtMs'?: (number | string | Long);
}

export interface LoginCode__Output {
  'code': (string);
  'expiresAtMs': (number);
}
