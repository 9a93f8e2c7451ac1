// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface HangSign {
  'quietForMs'?: (number | string | Long);
  'usualMs'?: (number | string | Long);
  'gpus'?: (string);
  'rank'?: (number);
  '_rank'?: "rank";
}

export interface HangSign__Output {
  'quietForMs': (number);
  'usualMs': (number);
  'gpus': (string);
  'rank'?: (number);
  '_rank'?: "rank";
}
