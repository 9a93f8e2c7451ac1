// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';

export interface ReadSecretsRequest {
  'task'?: (_muster_v1_TaskRef | null);
}

export interface ReadSecretsRequest__Output {
  'task': (_muster_v1_TaskRef__Output | null);
}
