// Original file: proto/muster/v1/types.proto

import type { MachineDisk as _muster_v1_MachineDisk, MachineDisk__Output as _muster_v1_MachineDisk__Output } from '../../muster/v1/MachineDisk.ts';
import type { MemoryModule as _muster_v1_MemoryModule, MemoryModule__Output as _muster_v1_MemoryModule__Output } from '../../muster/v1/MemoryModule.ts';

export interface MachineFacts {
  'model'?: (string);
  'board'?: (string);
  'bios'?: (string);
  'disks'?: (_muster_v1_MachineDisk)[];
  'memoryModules'?: (_muster_v1_MemoryModule)[];
  '_model'?: "model";
  '_board'?: "board";
  '_bios'?: "bios";
}

export interface MachineFacts__Output {
  'model'?: (string);
  'board'?: (string);
  'bios'?: (string);
  'disks': (_muster_v1_MachineDisk__Output)[];
  'memoryModules': (_muster_v1_MemoryModule__Output)[];
  '_model'?: "model";
  '_board'?: "board";
  '_bios'?: "bios";
}
