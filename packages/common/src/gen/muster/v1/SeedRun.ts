// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface SeedRun {
  'seed'?: (number);
  'jobId'?: (string);
  'state'?: (string);
  'value'?: (number | string);
  'furtherValues'?: (number | string)[];
  'step'?: (number | string | Long);
  'cause'?: (string);
  'lost'?: (string);
  '_value'?: "value";
  '_step'?: "step";
  '_cause'?: "cause";
  '_lost'?: "lost";
}

export interface SeedRun__Output {
  'seed': (number);
  'jobId': (string);
  'state': (string);
  'value'?: (number);
  'furtherValues': (number)[];
  'step'?: (number);
  'cause'?: (string);
  'lost'?: (string);
  '_value'?: "value";
  '_step'?: "step";
  '_cause'?: "cause";
  '_lost'?: "lost";
}
