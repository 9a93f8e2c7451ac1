// Original file: proto/muster/v1/agent.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { TrainingRow as _muster_v1_TrainingRow, TrainingRow__Output as _muster_v1_TrainingRow__Output } from '../../muster/v1/TrainingRow.ts';
import type { ValueCount as _muster_v1_ValueCount, ValueCount__Output as _muster_v1_ValueCount__Output } from '../../muster/v1/ValueCount.ts';
import type { Long } from '@grpc/proto-loader';

export interface RowUpload {
  'task'?: (_muster_v1_TaskRef | null);
  'rows'?: (_muster_v1_TrainingRow)[];
  'complete'?: (boolean);
  'lost'?: (boolean);
  'printed'?: (_muster_v1_ValueCount)[];
  'unreadBytes'?: (number | string | Long);
}

export interface RowUpload__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'rows': (_muster_v1_TrainingRow__Output)[];
  'complete': (boolean);
  'lost': (boolean);
  'printed': (_muster_v1_ValueCount__Output)[];
  'unreadBytes': (number);
}
