// Original file: proto/muster/v1/muster.proto

import type { TriggerFire as _muster_v1_TriggerFire, TriggerFire__Output as _muster_v1_TriggerFire__Output } from '../../muster/v1/TriggerFire.ts';
import type { TriggerBlock as _muster_v1_TriggerBlock, TriggerBlock__Output as _muster_v1_TriggerBlock__Output } from '../../muster/v1/TriggerBlock.ts';
import type { Long } from '@grpc/proto-loader';

export interface Trigger {
  'name'?: (string);
  'kind'?: (string);
  'user'?: (string);
  'project'?: (string);
  'pipeline'?: (string);
  'overlap'?: (string);
  'paused'?: (boolean);
  'cron'?: (string);
  'timeZone'?: (string);
  'missed'?: (string);
  'nextAtMs'?: (number | string | Long);
  'running'?: (string)[];
  'queued'?: (number);
  'fires'?: (_muster_v1_TriggerFire)[];
  'spec'?: (string);
  'params'?: (string);
  'createdAtMs'?: (number | string | Long);
  'secret'?: (string);
  'condition'?: (string);
  'directory'?: (string);
  'blocked'?: (_muster_v1_TriggerBlock | null);
  '_cron'?: "cron";
  '_timeZone'?: "timeZone";
  '_missed'?: "missed";
  '_nextAtMs'?: "nextAtMs";
  '_secret'?: "secret";
  '_condition'?: "condition";
  '_directory'?: "directory";
}

export interface Trigger__Output {
  'name': (string);
  'kind': (string);
  'user': (string);
  'project': (string);
  'pipeline': (string);
  'overlap': (string);
  'paused': (boolean);
  'cron'?: (string);
  'timeZone'?: (string);
  'missed'?: (string);
  'nextAtMs'?: (number);
  'running': (string)[];
  'queued': (number);
  'fires': (_muster_v1_TriggerFire__Output)[];
  'spec': (string);
  'params': (string);
  'createdAtMs': (number);
  'secret'?: (string);
  'condition'?: (string);
  'directory'?: (string);
  'blocked': (_muster_v1_TriggerBlock__Output | null);
  '_cron'?: "cron";
  '_timeZone'?: "timeZone";
  '_missed'?: "missed";
  '_nextAtMs'?: "nextAtMs";
  '_secret'?: "secret";
  '_condition'?: "condition";
  '_directory'?: "directory";
}
