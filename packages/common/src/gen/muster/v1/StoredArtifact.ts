// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface StoredArtifact {
  'name'?: (string);
  'bytes'?: (number | string | Long);
  'digest'?: (string);
}

export interface StoredArtifact__Output {
  'name': (string);
  'bytes': (number);
  'digest': (string);
}
