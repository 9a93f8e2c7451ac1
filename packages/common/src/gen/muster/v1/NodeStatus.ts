// Original file: proto/muster/v1/agent.proto

import type { NodeInventory as _muster_v1_NodeInventory, NodeInventory__Output as _muster_v1_NodeInventory__Output } from '../../muster/v1/NodeInventory.ts';
import type { Condition as _muster_v1_Condition, Condition__Output as _muster_v1_Condition__Output } from '../../muster/v1/Condition.ts';
import type { Long } from '@grpc/proto-loader';

export interface NodeStatus {
  'inventory'?: (_muster_v1_NodeInventory | null);
  'conditions'?: (_muster_v1_Condition)[];
  'leavingInMs'?: (number | string | Long);
  '_leavingInMs'?: "leavingInMs";
}

export interface NodeStatus__Output {
  'inventory': (_muster_v1_NodeInventory__Output | null);
  'conditions': (_muster_v1_Condition__Output)[];
  'leavingInMs'?: (number);
  '_leavingInMs'?: "leavingInMs";
}
