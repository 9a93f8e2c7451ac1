// Original file: proto/muster/v1/agent.proto

import type { Peer as _muster_v1_Peer, Peer__Output as _muster_v1_Peer__Output } from '../../muster/v1/Peer.ts';
import type { Preflight as _muster_v1_Preflight, Preflight__Output as _muster_v1_Preflight__Output } from '../../muster/v1/Preflight.ts';

export interface PathCheck {
  'round'?: (number);
  'addresses'?: (string)[];
  'peers'?: (_muster_v1_Peer)[];
  'preflight'?: (_muster_v1_Preflight | null);
}

export interface PathCheck__Output {
  'round': (number);
  'addresses': (string)[];
  'peers': (_muster_v1_Peer__Output)[];
  'preflight': (_muster_v1_Preflight__Output | null);
}
