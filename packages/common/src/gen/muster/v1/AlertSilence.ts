// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface AlertSilence {
  'alert'?: (string);
  'untilMs'?: (number | string | Long);
  'by'?: (string);
  'reason'?: (string);
}

export interface AlertSilence__Output {
  'alert': (string);
  'untilMs': (number);
  'by': (string);
  'reason': (string);
}
