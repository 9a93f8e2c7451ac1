// Original file: proto/muster/v1/types.proto

import type { NodeState as _muster_v1_NodeState, NodeState__Output as _muster_v1_NodeState__Output } from '../../muster/v1/NodeState.ts';
import type { NodeInventory as _muster_v1_NodeInventory, NodeInventory__Output as _muster_v1_NodeInventory__Output } from '../../muster/v1/NodeInventory.ts';
import type { GpuUse as _muster_v1_GpuUse, GpuUse__Output as _muster_v1_GpuUse__Output } from '../../muster/v1/GpuUse.ts';
import type { Condition as _muster_v1_Condition, Condition__Output as _muster_v1_Condition__Output } from '../../muster/v1/Condition.ts';
import type { PathBandwidth as _muster_v1_PathBandwidth, PathBandwidth__Output as _muster_v1_PathBandwidth__Output } from '../../muster/v1/PathBandwidth.ts';
import type { Drain as _muster_v1_Drain, Drain__Output as _muster_v1_Drain__Output } from '../../muster/v1/Drain.ts';
import type { NodeTask as _muster_v1_NodeTask, NodeTask__Output as _muster_v1_NodeTask__Output } from '../../muster/v1/NodeTask.ts';
import type { OrphanTask as _muster_v1_OrphanTask, OrphanTask__Output as _muster_v1_OrphanTask__Output } from '../../muster/v1/OrphanTask.ts';
import type { Long } from '@grpc/proto-loader';

export interface Node {
  'name'?: (string);
  'state'?: (_muster_v1_NodeState);
  'inventory'?: (_muster_v1_NodeInventory | null);
  'agentVersion'?: (string);
  'joinedAtMs'?: (number | string | Long);
  'silentForMs'?: (number | string | Long);
  'gpuUses'?: (_muster_v1_GpuUse)[];
  'cpusUsed'?: (number | string);
  'memoryUsedMb'?: (number | string | Long);
  'conditions'?: (_muster_v1_Condition)[];
  'drained'?: (boolean);
  'drainedGpuUuids'?: (string)[];
  'fencedInMs'?: (number | string | Long);
  'bandwidths'?: (_muster_v1_PathBandwidth)[];
  'drain'?: (_muster_v1_Drain | null);
  'tasks'?: (_muster_v1_NodeTask)[];
  'orphans'?: (_muster_v1_OrphanTask)[];
  '_silentForMs'?: "silentForMs";
  '_fencedInMs'?: "fencedInMs";
}

export interface Node__Output {
  'name': (string);
  'state': (_muster_v1_NodeState__Output);
  'inventory': (_muster_v1_NodeInventory__Output | null);
  'agentVersion': (string);
  'joinedAtMs': (number);
  'silentForMs'?: (number);
  'gpuUses': (_muster_v1_GpuUse__Output)[];
  'cpusUsed': (number);
  'memoryUsedMb': (number);
  'conditions': (_muster_v1_Condition__Output)[];
  'drained': (boolean);
  'drainedGpuUuids': (string)[];
  'fencedInMs'?: (number);
  'bandwidths': (_muster_v1_PathBandwidth__Output)[];
  'drain': (_muster_v1_Drain__Output | null);
  'tasks': (_muster_v1_NodeTask__Output)[];
  'orphans': (_muster_v1_OrphanTask__Output)[];
  '_silentForMs'?: "silentForMs";
  '_fencedInMs'?: "fencedInMs";
}
