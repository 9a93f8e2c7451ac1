// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface Resume {
  'name'?: (string);
  'step'?: (number | string | Long);
  '_step'?: "step";
}

export interface Resume__Output {
  'name': (string);
  'step'?: (number);
  '_step'?: "step";
}
