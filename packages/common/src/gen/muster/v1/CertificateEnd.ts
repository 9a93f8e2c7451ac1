// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface CertificateEnd {
  'kind'?: (string);
  'node'?: (string);
  'expiresAtMs'?: (number | string | Long);
  '_node'?: "node";
}

export interface CertificateEnd__Output {
  'kind': (string);
  'node'?: (string);
  'expiresAtMs': (number);
  '_node'?: "node";
}
