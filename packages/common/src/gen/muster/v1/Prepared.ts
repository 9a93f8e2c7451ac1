// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Master as _muster_v1_Master, Master__Output as _muster_v1_Master__Output } from '../../muster/v1/Master.ts';
import type { Endpoint as _muster_v1_Endpoint, Endpoint__Output as _muster_v1_Endpoint__Output } from '../../muster/v1/Endpoint.ts';
import type { CheckpointLook as _muster_v1_CheckpointLook, CheckpointLook__Output as _muster_v1_CheckpointLook__Output } from '../../muster/v1/CheckpointLook.ts';

export interface Prepared {
  'task'?: (_muster_v1_TaskRef | null);
  'master'?: (_muster_v1_Master | null);
  'endpoints'?: (_muster_v1_Endpoint)[];
  'testPort'?: (number);
  'look'?: (_muster_v1_CheckpointLook | null);
  '_testPort'?: "testPort";
}

export interface Prepared__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'master': (_muster_v1_Master__Output | null);
  'endpoints': (_muster_v1_Endpoint__Output)[];
  'testPort'?: (number);
  'look': (_muster_v1_CheckpointLook__Output | null);
  '_testPort'?: "testPort";
}
