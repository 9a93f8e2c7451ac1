// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface Evidence {
  'line'?: (number | string | Long);
  'text'?: (string);
  'rank'?: (number);
  '_line'?: "line";
  '_rank'?: "rank";
}

export interface Evidence__Output {
  'line'?: (number);
  'text': (string);
  'rank'?: (number);
  '_line'?: "line";
  '_rank'?: "rank";
}
