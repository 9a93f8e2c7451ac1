// Original file: proto/muster/v1/muster.proto

import type { Trial as _muster_v1_Trial, Trial__Output as _muster_v1_Trial__Output } from '../../muster/v1/Trial.ts';
import type { SweepUse as _muster_v1_SweepUse, SweepUse__Output as _muster_v1_SweepUse__Output } from '../../muster/v1/SweepUse.ts';
import type { Long } from '@grpc/proto-loader';

export interface Sweep {
  'id'?: (string);
  'name'?: (string);
  'user'?: (string);
  'project'?: (string);
  'state'?: (string);
  'reason'?: (string);
  'spec'?: (string);
  'createdAtMs'?: (number | string | Long);
  'endedAtMs'?: (number | string | Long);
  'trials'?: (number);
  'running'?: (number);
  'complete'?: (number);
  'infeasible'?: (number);
  'failed'?: (number);
  'stopped'?: (number);
  'best'?: (_muster_v1_Trial | null);
  'pruned'?: (number);
  'paused'?: (number);
  'use'?: (_muster_v1_SweepUse | null);
  'incomplete'?: (number);
  'awaits'?: (string);
  '_reason'?: "reason";
  '_endedAtMs'?: "endedAtMs";
  '_awaits'?: "awaits";
}

export interface Sweep__Output {
  'id': (string);
  'name': (string);
  'user': (string);
  'project': (string);
  'state': (string);
  'reason'?: (string);
  'spec': (string);
  'createdAtMs': (number);
  'endedAtMs'?: (number);
  'trials': (number);
  'running': (number);
  'complete': (number);
  'infeasible': (number);
  'failed': (number);
  'stopped': (number);
  'best': (_muster_v1_Trial__Output | null);
  'pruned': (number);
  'paused': (number);
  'use': (_muster_v1_SweepUse__Output | null);
  'incomplete': (number);
  'awaits'?: (string);
  '_reason'?: "reason";
  '_endedAtMs'?: "endedAtMs";
  '_awaits'?: "awaits";
}
