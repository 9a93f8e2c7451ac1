// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Peer as _muster_v1_Peer, Peer__Output as _muster_v1_Peer__Output } from '../../muster/v1/Peer.ts';
import type { Preflight as _muster_v1_Preflight, Preflight__Output as _muster_v1_Preflight__Output } from '../../muster/v1/Preflight.ts';

export interface Check {
  'task'?: (_muster_v1_TaskRef | null);
  'round'?: (number);
  'addresses'?: (string)[];
  'peers'?: (_muster_v1_Peer)[];
  'preflight'?: (_muster_v1_Preflight | null);
}

export interface Check__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'round': (number);
  'addresses': (string)[];
  'peers': (_muster_v1_Peer__Output)[];
  'preflight': (_muster_v1_Preflight__Output | null);
}
