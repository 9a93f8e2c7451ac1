// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface CoordinatorClock {
  'systemWallMs'?: (number | string | Long);
  'trustedWallMs'?: (number | string | Long);
  'basis'?: (string);
  'isSynchronised'?: (boolean);
  'agentsWallMs'?: (number | string | Long);
  'steppedSinceMs'?: (number | string | Long);
  '_isSynchronised'?: "isSynchronised";
  '_agentsWallMs'?: "agentsWallMs";
  '_steppedSinceMs'?: "steppedSinceMs";
}

export interface CoordinatorClock__Output {
  'systemWallMs': (number);
  'trustedWallMs': (number);
  'basis': (string);
  'isSynchronised'?: (boolean);
  'agentsWallMs'?: (number);
  'steppedSinceMs'?: (number);
  '_isSynchronised'?: "isSynchronised";
  '_agentsWallMs'?: "agentsWallMs";
  '_steppedSinceMs'?: "steppedSinceMs";
}
