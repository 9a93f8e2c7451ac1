// Original file: proto/muster/v1/agent.proto

import type { NodeInventory as _muster_v1_NodeInventory, NodeInventory__Output as _muster_v1_NodeInventory__Output } from '../../muster/v1/NodeInventory.ts';
import type { TaskReport as _muster_v1_TaskReport, TaskReport__Output as _muster_v1_TaskReport__Output } from '../../muster/v1/TaskReport.ts';
import type { Condition as _muster_v1_Condition, Condition__Output as _muster_v1_Condition__Output } from '../../muster/v1/Condition.ts';
import type { CheckpointSeen as _muster_v1_CheckpointSeen, CheckpointSeen__Output as _muster_v1_CheckpointSeen__Output } from '../../muster/v1/CheckpointSeen.ts';
import type { TaskProof as _muster_v1_TaskProof, TaskProof__Output as _muster_v1_TaskProof__Output } from '../../muster/v1/TaskProof.ts';
import type { Continuity as _muster_v1_Continuity, Continuity__Output as _muster_v1_Continuity__Output } from '../../muster/v1/Continuity.ts';
import type { Long } from '@grpc/proto-loader';

export interface Hello {
  'protocolVersion'?: (number);
  'agentVersion'?: (string);
  'instanceId'?: (string);
  'bootId'?: (string);
  'inventory'?: (_muster_v1_NodeInventory | null);
  'observed'?: (_muster_v1_TaskReport)[];
  'conditions'?: (_muster_v1_Condition)[];
  'highestTerm'?: (number | string | Long);
  'sentBoottimeMs'?: (number | string | Long);
  'leavingInMs'?: (number | string | Long);
  'checkpoints'?: (_muster_v1_CheckpointSeen)[];
  'termProof'?: (string);
  'clusterId'?: (string);
  'proofs'?: (_muster_v1_TaskProof)[];
  'sentWallMs'?: (number | string | Long);
  'marksRowEnds'?: (boolean);
  'continuity'?: (_muster_v1_Continuity | null);
  '_highestTerm'?: "highestTerm";
  '_leavingInMs'?: "leavingInMs";
  '_termProof'?: "termProof";
  '_clusterId'?: "clusterId";
}

export interface Hello__Output {
  'protocolVersion': (number);
  'agentVersion': (string);
  'instanceId': (string);
  'bootId': (string);
  'inventory': (_muster_v1_NodeInventory__Output | null);
  'observed': (_muster_v1_TaskReport__Output)[];
  'conditions': (_muster_v1_Condition__Output)[];
  'highestTerm'?: (number);
  'sentBoottimeMs': (number);
  'leavingInMs'?: (number);
  'checkpoints': (_muster_v1_CheckpointSeen__Output)[];
  'termProof'?: (string);
  'clusterId'?: (string);
  'proofs': (_muster_v1_TaskProof__Output)[];
  'sentWallMs': (number);
  'marksRowEnds': (boolean);
  'continuity': (_muster_v1_Continuity__Output | null);
  '_highestTerm'?: "highestTerm";
  '_leavingInMs'?: "leavingInMs";
  '_termProof'?: "termProof";
  '_clusterId'?: "clusterId";
}
