// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface DiskPart {
  'part'?: (string);
  'usedBytes'?: (number | string | Long);
  'limitBytes'?: (number | string | Long);
  '_limitBytes'?: "limitBytes";
}

export interface DiskPart__Output {
  'part': (string);
  'usedBytes': (number);
  'limitBytes'?: (number);
  '_limitBytes'?: "limitBytes";
}
