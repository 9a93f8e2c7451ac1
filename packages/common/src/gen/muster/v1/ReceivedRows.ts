// Original file: proto/muster/v1/agent.proto

import type { ValueCount as _muster_v1_ValueCount, ValueCount__Output as _muster_v1_ValueCount__Output } from '../../muster/v1/ValueCount.ts';
import type { Long } from '@grpc/proto-loader';

export interface ReceivedRows {
  'printed'?: (_muster_v1_ValueCount)[];
  'unreadBytes'?: (number | string | Long);
}

export interface ReceivedRows__Output {
  'printed': (_muster_v1_ValueCount__Output)[];
  'unreadBytes': (number);
}
