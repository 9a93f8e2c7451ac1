// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface TrainingProgress {
  'framework'?: (string);
  'latest'?: ({[key: string]: number | string});
  'totalSteps'?: (number | string | Long);
  'etaMs'?: (number | string | Long);
  'rows'?: (number | string | Long);
  'atMs'?: (number | string | Long);
  'notFinite'?: (string)[];
  '_framework'?: "framework";
  '_totalSteps'?: "totalSteps";
  '_etaMs'?: "etaMs";
}

export interface TrainingProgress__Output {
  'framework'?: (string);
  'latest': ({[key: string]: number});
  'totalSteps'?: (number);
  'etaMs'?: (number);
  'rows': (number);
  'atMs': (number);
  'notFinite': (string)[];
  '_framework'?: "framework";
  '_totalSteps'?: "totalSteps";
  '_etaMs'?: "etaMs";
}
