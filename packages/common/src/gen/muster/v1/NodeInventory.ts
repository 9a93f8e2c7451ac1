// Original file: proto/muster/v1/types.proto

import type { Gpu as _muster_v1_Gpu, Gpu__Output as _muster_v1_Gpu__Output } from '../../muster/v1/Gpu.ts';
import type { Long } from '@grpc/proto-loader';

export interface NodeInventory {
  'gpus'?: (_muster_v1_Gpu)[];
  'cpus'?: (number);
  'memoryMb'?: (number | string | Long);
  'addresses'?: (string)[];
  'labels'?: ({[key: string]: string});
  'drivers'?: (string)[];
}

export interface NodeInventory__Output {
  'gpus': (_muster_v1_Gpu__Output)[];
  'cpus': (number);
  'memoryMb': (number);
  'addresses': (string)[];
  'labels': ({[key: string]: string});
  'drivers': (string)[];
}
