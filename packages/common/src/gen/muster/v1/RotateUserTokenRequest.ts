// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface RotateUserTokenRequest {
  'id'?: (string);
  'keepMs'?: (number | string | Long);
  '_id'?: "id";
  '_keepMs'?: "keepMs";
}

export interface RotateUserTokenRequest__Output {
  'id'?: (string);
  'keepMs'?: (number);
  '_id'?: "id";
  '_keepMs'?: "keepMs";
}
