// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface Trial {
  'number'?: (number);
  'state'?: (string);
  'params'?: (string);
  'jobId'?: (string);
  'value'?: (number | string);
  'step'?: (number | string | Long);
  'cause'?: (string);
  'startedAtMs'?: (number | string | Long);
  'endedAtMs'?: (number | string | Long);
  'earlierJobs'?: (string)[];
  'furtherValues'?: (number | string)[];
  '_value'?: "value";
  '_step'?: "step";
  '_cause'?: "cause";
  '_endedAtMs'?: "endedAtMs";
}

export interface Trial__Output {
  'number': (number);
  'state': (string);
  'params': (string);
  'jobId': (string);
  'value'?: (number);
  'step'?: (number);
  'cause'?: (string);
  'startedAtMs': (number);
  'endedAtMs'?: (number);
  'earlierJobs': (string)[];
  'furtherValues': (number)[];
  '_value'?: "value";
  '_step'?: "step";
  '_cause'?: "cause";
  '_endedAtMs'?: "endedAtMs";
}
