// Original file: proto/muster/v1/muster.proto

import type { SeedRun as _muster_v1_SeedRun, SeedRun__Output as _muster_v1_SeedRun__Output } from '../../muster/v1/SeedRun.ts';
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
  'deviation'?: (number | string);
  'furtherDeviations'?: (number | string)[];
  'seeds'?: (_muster_v1_SeedRun)[];
  'lost'?: (string);
  'awaits'?: (string);
  '_value'?: "value";
  '_step'?: "step";
  '_cause'?: "cause";
  '_endedAtMs'?: "endedAtMs";
  '_deviation'?: "deviation";
  '_lost'?: "lost";
  '_awaits'?: "awaits";
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
  'deviation'?: (number);
  'furtherDeviations': (number)[];
  'seeds': (_muster_v1_SeedRun__Output)[];
  'lost'?: (string);
  'awaits'?: (string);
  '_value'?: "value";
  '_step'?: "step";
  '_cause'?: "cause";
  '_endedAtMs'?: "endedAtMs";
  '_deviation'?: "deviation";
  '_lost'?: "lost";
  '_awaits'?: "awaits";
}
