// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Start as _muster_v1_Start, Start__Output as _muster_v1_Start__Output } from '../../muster/v1/Start.ts';
import type { Stop as _muster_v1_Stop, Stop__Output as _muster_v1_Stop__Output } from '../../muster/v1/Stop.ts';
import type { PathCheck as _muster_v1_PathCheck, PathCheck__Output as _muster_v1_PathCheck__Output } from '../../muster/v1/PathCheck.ts';
import type { Resume as _muster_v1_Resume, Resume__Output as _muster_v1_Resume__Output } from '../../muster/v1/Resume.ts';
import type { CorruptCheckpoint as _muster_v1_CorruptCheckpoint, CorruptCheckpoint__Output as _muster_v1_CorruptCheckpoint__Output } from '../../muster/v1/CorruptCheckpoint.ts';
import type { LookOrder as _muster_v1_LookOrder, LookOrder__Output as _muster_v1_LookOrder__Output } from '../../muster/v1/LookOrder.ts';

export interface Assignment {
  'task'?: (_muster_v1_TaskRef | null);
  'specJson'?: (string);
  'nodeCount'?: (number);
  'gpuUuids'?: (string)[];
  'arrayIndex'?: (number);
  'arraySize'?: (number);
  'start'?: (_muster_v1_Start | null);
  'stop'?: (_muster_v1_Stop | null);
  'check'?: (_muster_v1_PathCheck | null);
  'leaseMs'?: (number);
  'resume'?: (_muster_v1_Resume | null);
  'checkpointJobId'?: (string);
  'batchScale'?: (number | string);
  'lrScale'?: (number | string);
  'quarantine'?: (_muster_v1_CorruptCheckpoint)[];
  'proof'?: (string);
  'doubted'?: (_muster_v1_CorruptCheckpoint)[];
  'lineage'?: (string)[];
  'user'?: (string);
  'traceparent'?: (string);
  'look'?: (_muster_v1_LookOrder | null);
  '_arrayIndex'?: "arrayIndex";
  '_arraySize'?: "arraySize";
  '_leaseMs'?: "leaseMs";
  '_traceparent'?: "traceparent";
}

export interface Assignment__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'specJson': (string);
  'nodeCount': (number);
  'gpuUuids': (string)[];
  'arrayIndex'?: (number);
  'arraySize'?: (number);
  'start': (_muster_v1_Start__Output | null);
  'stop': (_muster_v1_Stop__Output | null);
  'check': (_muster_v1_PathCheck__Output | null);
  'leaseMs'?: (number);
  'resume': (_muster_v1_Resume__Output | null);
  'checkpointJobId': (string);
  'batchScale': (number);
  'lrScale': (number);
  'quarantine': (_muster_v1_CorruptCheckpoint__Output)[];
  'proof': (string);
  'doubted': (_muster_v1_CorruptCheckpoint__Output)[];
  'lineage': (string)[];
  'user': (string);
  'traceparent'?: (string);
  'look': (_muster_v1_LookOrder__Output | null);
  '_arrayIndex'?: "arrayIndex";
  '_arraySize'?: "arraySize";
  '_leaseMs'?: "leaseMs";
  '_traceparent'?: "traceparent";
}
