// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface MissingOutput {
  'node'?: (string);
  'bytes'?: (number | string | Long);
  'silentForMs'?: (number | string | Long);
  '_silentForMs'?: "silentForMs";
}

export interface MissingOutput__Output {
  'node': (string);
  'bytes': (number);
  'silentForMs'?: (number);
  '_silentForMs'?: "silentForMs";
}
