// Original file: proto/muster/v1/agent.proto

import type { TaskReport as _muster_v1_TaskReport, TaskReport__Output as _muster_v1_TaskReport__Output } from '../../muster/v1/TaskReport.ts';
import type { Long } from '@grpc/proto-loader';

export interface Heartbeat {
  'seq'?: (number | string | Long);
  'sentBoottimeMs'?: (number | string | Long);
  'observed'?: (_muster_v1_TaskReport)[];
  'sentWallMs'?: (number | string | Long);
}

export interface Heartbeat__Output {
  'seq': (number);
  'sentBoottimeMs': (number);
  'observed': (_muster_v1_TaskReport__Output)[];
  'sentWallMs': (number);
}
