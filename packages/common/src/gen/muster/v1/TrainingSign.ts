// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface TrainingSign {
  'kind'?: (string);
  'step'?: (number | string | Long);
  'lastGoodStep'?: (number | string | Long);
  'rank'?: (number);
  'line'?: (number | string | Long);
  'text'?: (string);
  '_step'?: "step";
  '_lastGoodStep'?: "lastGoodStep";
  '_rank'?: "rank";
}

export interface TrainingSign__Output {
  'kind': (string);
  'step'?: (number);
  'lastGoodStep'?: (number);
  'rank'?: (number);
  'line': (number);
  'text': (string);
  '_step'?: "step";
  '_lastGoodStep'?: "lastGoodStep";
  '_rank'?: "rank";
}
