// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface MemoryModule {
  'sizeBytes'?: (number | string | Long);
  'type'?: (string);
  'clockMhz'?: (number);
  'model'?: (string);
  '_clockMhz'?: "clockMhz";
}

export interface MemoryModule__Output {
  'sizeBytes': (number);
  'type': (string);
  'clockMhz'?: (number);
  'model': (string);
  '_clockMhz'?: "clockMhz";
}
