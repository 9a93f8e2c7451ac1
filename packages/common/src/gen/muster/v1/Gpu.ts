// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface Gpu {
  'uuid'?: (string);
  'model'?: (string);
  'memoryMb'?: (number | string | Long);
  'simulated'?: (boolean);
}

export interface Gpu__Output {
  'uuid': (string);
  'model': (string);
  'memoryMb': (number);
  'simulated': (boolean);
}
