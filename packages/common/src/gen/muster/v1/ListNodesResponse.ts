// Original file: proto/muster/v1/muster.proto

import type { Node as _muster_v1_Node, Node__Output as _muster_v1_Node__Output } from '../../muster/v1/Node.ts';

export interface ListNodesResponse {
  'nodes'?: (_muster_v1_Node)[];
}

export interface ListNodesResponse__Output {
  'nodes': (_muster_v1_Node__Output)[];
}
