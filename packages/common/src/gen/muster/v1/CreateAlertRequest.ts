// Original file: proto/muster/v1/muster.proto

import type { AlertScope as _muster_v1_AlertScope, AlertScope__Output as _muster_v1_AlertScope__Output } from '../../muster/v1/AlertScope.ts';
import type { Long } from '@grpc/proto-loader';

export interface CreateAlertRequest {
  'name'?: (string);
  'severity'?: (string);
  'condition'?: (string);
  'message'?: (string);
  'labels'?: ({[key: string]: string});
  'forMs'?: (number | string | Long);
  'repeatMs'?: (number | string | Long);
  'scope'?: (_muster_v1_AlertScope | null);
  'dryRun'?: (boolean);
  '_severity'?: "severity";
  '_message'?: "message";
  '_repeatMs'?: "repeatMs";
}

export interface CreateAlertRequest__Output {
  'name': (string);
  'severity'?: (string);
  'condition': (string);
  'message'?: (string);
  'labels': ({[key: string]: string});
  'forMs': (number);
  'repeatMs'?: (number);
  'scope': (_muster_v1_AlertScope__Output | null);
  'dryRun': (boolean);
  '_severity'?: "severity";
  '_message'?: "message";
  '_repeatMs'?: "repeatMs";
}
