// Original file: proto/muster/v1/types.proto

import type { JobPhase as _muster_v1_JobPhase, JobPhase__Output as _muster_v1_JobPhase__Output } from '../../muster/v1/JobPhase.ts';
import type { Long } from '@grpc/proto-loader';

export interface JobPhases {
  'unit'?: (string);
  'index'?: (number);
  'done'?: (number | string | Long);
  'total'?: (number | string | Long);
  'percent'?: (number | string);
  'phases'?: (_muster_v1_JobPhase)[];
}

export interface JobPhases__Output {
  'unit': (string);
  'index': (number);
  'done': (number);
  'total': (number);
  'percent': (number);
  'phases': (_muster_v1_JobPhase__Output)[];
}
