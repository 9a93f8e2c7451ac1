// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface Resume {
  'name'?: (string);
  'step'?: (number | string | Long);
  'why'?: (string);
  '_step'?: "step";
  '_why'?: "why";
}

export interface Resume__Output {
  'name': (string);
  'step'?: (number);
  'why'?: (string);
  '_step'?: "step";
  '_why'?: "why";
}
