// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface MachineDisk {
  'model'?: (string);
  'type'?: (string);
  'sizeBytes'?: (number | string | Long);
  '_sizeBytes'?: "sizeBytes";
}

export interface MachineDisk__Output {
  'model': (string);
  'type': (string);
  'sizeBytes'?: (number);
  '_sizeBytes'?: "sizeBytes";
}
