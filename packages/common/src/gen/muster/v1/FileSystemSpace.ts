// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface FileSystemSpace {
  'path'?: (string);
  'sizeBytes'?: (number | string | Long);
  'availableBytes'?: (number | string | Long);
  'reserveBytes'?: (number | string | Long);
}

export interface FileSystemSpace__Output {
  'path': (string);
  'sizeBytes': (number);
  'availableBytes': (number);
  'reserveBytes': (number);
}
