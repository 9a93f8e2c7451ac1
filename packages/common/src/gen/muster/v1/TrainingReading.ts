// Original file: proto/muster/v1/types.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Long } from '@grpc/proto-loader';

export interface TrainingReading {
  'task'?: (_muster_v1_TaskRef | null);
  'atMs'?: (number | string | Long);
  'values'?: ({[key: string]: number | string});
}

export interface TrainingReading__Output {
  'task': (_muster_v1_TaskRef__Output | null);
  'atMs': (number);
  'values': ({[key: string]: number});
}
