// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface AttemptSign {
  'kind'?: (string);
  'step'?: (number | string | Long);
  'lastGoodStep'?: (number | string | Long);
  '_step'?: "step";
  '_lastGoodStep'?: "lastGoodStep";
}

export interface AttemptSign__Output {
  'kind': (string);
  'step'?: (number);
  'lastGoodStep'?: (number);
  '_step'?: "step";
  '_lastGoodStep'?: "lastGoodStep";
}
