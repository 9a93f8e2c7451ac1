// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface TaskFailure {
  'source'?: (string);
  'consequence'?: (boolean);
  'rank'?: (number);
  'message'?: (string);
  'atBoottimeMs'?: (number | string | Long);
  'kind'?: (string);
  'blame'?: (string);
  'line'?: (number | string | Long);
  '_rank'?: "rank";
  '_kind'?: "kind";
  '_blame'?: "blame";
  '_line'?: "line";
}

export interface TaskFailure__Output {
  'source': (string);
  'consequence': (boolean);
  'rank'?: (number);
  'message': (string);
  'atBoottimeMs': (number);
  'kind'?: (string);
  'blame'?: (string);
  'line'?: (number);
  '_rank'?: "rank";
  '_kind'?: "kind";
  '_blame'?: "blame";
  '_line'?: "line";
}
