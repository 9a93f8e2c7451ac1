// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface PendingReason {
  'kind'?: (string);
  'message'?: (string);
  'remedy'?: (string);
  'waitMs'?: (number | string | Long);
  '_remedy'?: "remedy";
  '_waitMs'?: "waitMs";
}

export interface PendingReason__Output {
  'kind': (string);
  'message': (string);
  'remedy'?: (string);
  'waitMs'?: (number);
  '_remedy'?: "remedy";
  '_waitMs'?: "waitMs";
}
