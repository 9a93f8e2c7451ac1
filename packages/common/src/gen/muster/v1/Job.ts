// Original file: proto/muster/v1/types.proto

import type { JobState as _muster_v1_JobState, JobState__Output as _muster_v1_JobState__Output } from '../../muster/v1/JobState.ts';
import type { PendingReason as _muster_v1_PendingReason, PendingReason__Output as _muster_v1_PendingReason__Output } from '../../muster/v1/PendingReason.ts';
import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from '../../muster/v1/Cause.ts';
import type { Attempt as _muster_v1_Attempt, Attempt__Output as _muster_v1_Attempt__Output } from '../../muster/v1/Attempt.ts';
import type { ArrayPlace as _muster_v1_ArrayPlace, ArrayPlace__Output as _muster_v1_ArrayPlace__Output } from '../../muster/v1/ArrayPlace.ts';
import type { ExcludedNode as _muster_v1_ExcludedNode, ExcludedNode__Output as _muster_v1_ExcludedNode__Output } from '../../muster/v1/ExcludedNode.ts';
import type { Checkpoint as _muster_v1_Checkpoint, Checkpoint__Output as _muster_v1_Checkpoint__Output } from '../../muster/v1/Checkpoint.ts';
import type { TrainingProgress as _muster_v1_TrainingProgress, TrainingProgress__Output as _muster_v1_TrainingProgress__Output } from '../../muster/v1/TrainingProgress.ts';
import type { LedgerEntry as _muster_v1_LedgerEntry, LedgerEntry__Output as _muster_v1_LedgerEntry__Output } from '../../muster/v1/LedgerEntry.ts';
import type { ResumedFrom as _muster_v1_ResumedFrom, ResumedFrom__Output as _muster_v1_ResumedFrom__Output } from '../../muster/v1/ResumedFrom.ts';
import type { JobPhases as _muster_v1_JobPhases, JobPhases__Output as _muster_v1_JobPhases__Output } from '../../muster/v1/JobPhases.ts';
import type { Long } from '@grpc/proto-loader';

export interface Job {
  'id'?: (string);
  'name'?: (string);
  'project'?: (string);
  'state'?: (_muster_v1_JobState);
  'spec'?: (string);
  'submittedAtMs'?: (number | string | Long);
  'endedAtMs'?: (number | string | Long);
  'pending'?: (_muster_v1_PendingReason | null);
  'cause'?: (_muster_v1_Cause | null);
  'attempts'?: (_muster_v1_Attempt)[];
  'array'?: (_muster_v1_ArrayPlace | null);
  'requeuedFrom'?: (string);
  'submitSeq'?: (number | string | Long);
  'excludedNodes'?: (_muster_v1_ExcludedNode)[];
  'checkpoints'?: (_muster_v1_Checkpoint)[];
  'training'?: (_muster_v1_TrainingProgress | null);
  'ledger'?: (_muster_v1_LedgerEntry)[];
  'preemptions'?: (number);
  'batchScale'?: (number | string);
  'lrScale'?: (number | string);
  'extraRuntimeMs'?: (number | string | Long);
  'failures'?: (number);
  'outputAtMs'?: (number | string | Long);
  'resumedFrom'?: (_muster_v1_ResumedFrom | null);
  'user'?: (string);
  'traceId'?: (string);
  'costUsd'?: (number | string);
  'phases'?: (_muster_v1_JobPhases | null);
  '_endedAtMs'?: "endedAtMs";
  '_requeuedFrom'?: "requeuedFrom";
  '_outputAtMs'?: "outputAtMs";
  '_user'?: "user";
  '_costUsd'?: "costUsd";
}

export interface Job__Output {
  'id': (string);
  'name': (string);
  'project': (string);
  'state': (_muster_v1_JobState__Output);
  'spec': (string);
  'submittedAtMs': (number);
  'endedAtMs'?: (number);
  'pending': (_muster_v1_PendingReason__Output | null);
  'cause': (_muster_v1_Cause__Output | null);
  'attempts': (_muster_v1_Attempt__Output)[];
  'array': (_muster_v1_ArrayPlace__Output | null);
  'requeuedFrom'?: (string);
  'submitSeq': (number);
  'excludedNodes': (_muster_v1_ExcludedNode__Output)[];
  'checkpoints': (_muster_v1_Checkpoint__Output)[];
  'training': (_muster_v1_TrainingProgress__Output | null);
  'ledger': (_muster_v1_LedgerEntry__Output)[];
  'preemptions': (number);
  'batchScale': (number);
  'lrScale': (number);
  'extraRuntimeMs': (number);
  'failures': (number);
  'outputAtMs'?: (number);
  'resumedFrom': (_muster_v1_ResumedFrom__Output | null);
  'user'?: (string);
  'traceId': (string);
  'costUsd'?: (number);
  'phases': (_muster_v1_JobPhases__Output | null);
  '_endedAtMs'?: "endedAtMs";
  '_requeuedFrom'?: "requeuedFrom";
  '_outputAtMs'?: "outputAtMs";
  '_user'?: "user";
  '_costUsd'?: "costUsd";
}
