// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface SetMaintenanceRequest {
  'forMs'?: (number | string | Long);
}

export interface SetMaintenanceRequest__Output {
  'forMs': (number);
}
