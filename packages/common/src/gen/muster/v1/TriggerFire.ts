// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface TriggerFire {
  'atMs'?: (number | string | Long);
  'cause'?: (string);
  'outcome'?: (string);
  'run'?: (string);
  'reason'?: (string);
  '_run'?: "run";
  '_reason'?: "reason";
}

export interface TriggerFire__Output {
  'atMs': (number);
  'cause': (string);
  'outcome': (string);
  'run'?: (string);
  'reason'?: (string);
  '_run'?: "run";
  '_reason'?: "reason";
}
