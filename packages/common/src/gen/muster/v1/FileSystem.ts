// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface FileSystem {
  'mountPoint'?: (string);
  'device'?: (string);
  'type'?: (string);
  'sizeBytes'?: (number | string | Long);
}

export interface FileSystem__Output {
  'mountPoint': (string);
  'device': (string);
  'type': (string);
  'sizeBytes': (number);
}
