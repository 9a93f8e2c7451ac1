// Original file: proto/muster/v1/muster.proto

import type { TrainingSummary as _muster_v1_TrainingSummary, TrainingSummary__Output as _muster_v1_TrainingSummary__Output } from '../../muster/v1/TrainingSummary.ts';
import type { Long } from '@grpc/proto-loader';

export interface SummarizeTrainingResponse {
  'metrics'?: (_muster_v1_TrainingSummary)[];
  'thinned'?: (boolean);
  'unreadBytes'?: (number | string | Long);
}

export interface SummarizeTrainingResponse__Output {
  'metrics': (_muster_v1_TrainingSummary__Output)[];
  'thinned': (boolean);
  'unreadBytes': (number);
}
