// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface Artifact {
  'name'?: (string);
  'type'?: (string);
  'path'?: (string);
  'bytes'?: (number | string | Long);
  'digest'?: (string);
}

export interface Artifact__Output {
  'name': (string);
  'type': (string);
  'path': (string);
  'bytes': (number);
  'digest': (string);
}
