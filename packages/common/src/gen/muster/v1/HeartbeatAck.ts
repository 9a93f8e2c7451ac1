// Original file: proto/muster/v1/agent.proto

import type { TaskVerdict as _muster_v1_TaskVerdict, TaskVerdict__Output as _muster_v1_TaskVerdict__Output } from '../../muster/v1/TaskVerdict.ts';
import type { Long } from '@grpc/proto-loader';

export interface HeartbeatAck {
  'seq'?: (number | string | Long);
  'verdicts'?: (_muster_v1_TaskVerdict)[];
  'wallMs'?: (number | string | Long);
}

export interface HeartbeatAck__Output {
  'seq': (number);
  'verdicts': (_muster_v1_TaskVerdict__Output)[];
  'wallMs': (number);
}
