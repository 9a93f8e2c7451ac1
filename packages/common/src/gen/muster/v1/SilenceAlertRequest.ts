// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface SilenceAlertRequest {
  'name'?: (string);
  'forMs'?: (number | string | Long);
  'reason'?: (string);
}

export interface SilenceAlertRequest__Output {
  'name': (string);
  'forMs': (number);
  'reason': (string);
}
