// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';

// Original file: proto/muster/v1/agent.proto

export const _muster_v1_TaskVerdict_Verdict = {
  VERDICT_UNSPECIFIED: 'VERDICT_UNSPECIFIED',
  VERDICT_RUN: 'VERDICT_RUN',
  VERDICT_STOP: 'VERDICT_STOP',
  VERDICT_FORGET: 'VERDICT_FORGET',
  VERDICT_UNKNOWN: 'VERDICT_UNKNOWN',
} as const;

export type _muster_v1_TaskVerdict_Verdict =
  | 'VERDICT_UNSPECIFIED'
  | 0
  | 'VERDICT_RUN'
  | 1
  | 'VERDICT_STOP'
  | 2
  | 'VERDICT_FORGET'
  | 3
  | 'VERDICT_UNKNOWN'
  | 4

export type _muster_v1_TaskVerdict_Verdict__Output = typeof _muster_v1_TaskVerdict_Verdict[keyof typeof _muster_v1_TaskVerdict_Verdict]

export interface TaskVerdict {
  'task'?: (_muster_v1_TaskRef | null);
  'verdict'?: (_muster_v1_TaskVerdict_Verdict);
  'leaseMs'?: (number);
  '_leaseMs'?: "leaseMs";
}

export interface TaskVerdict__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'verdict': (_muster_v1_TaskVerdict_Verdict__Output);
  'leaseMs'?: (number);
  '_leaseMs'?: "leaseMs";
}
