// Original file: proto/muster/v1/types.proto

import type { MigInstance as _muster_v1_MigInstance, MigInstance__Output as _muster_v1_MigInstance__Output } from '../../muster/v1/MigInstance.ts';
import type { Long } from '@grpc/proto-loader';

export interface Gpu {
  'uuid'?: (string);
  'model'?: (string);
  'memoryMb'?: (number | string | Long);
  'simulated'?: (boolean);
  'index'?: (number);
  'pciBusId'?: (string);
  'numaNode'?: (number);
  'cpuAffinity'?: (string);
  'mig'?: (_muster_v1_MigInstance | null);
  'serial'?: (string);
  '_memoryMb'?: "memoryMb";
  '_index'?: "index";
  '_pciBusId'?: "pciBusId";
  '_numaNode'?: "numaNode";
  '_cpuAffinity'?: "cpuAffinity";
  '_serial'?: "serial";
}

export interface Gpu__Output {
  'uuid': (string);
  'model': (string);
  'memoryMb'?: (number);
  'simulated': (boolean);
  'index'?: (number);
  'pciBusId'?: (string);
  'numaNode'?: (number);
  'cpuAffinity'?: (string);
  'mig': (_muster_v1_MigInstance__Output | null);
  'serial'?: (string);
  '_memoryMb'?: "memoryMb";
  '_index'?: "index";
  '_pciBusId'?: "pciBusId";
  '_numaNode'?: "numaNode";
  '_cpuAffinity'?: "cpuAffinity";
  '_serial'?: "serial";
}
