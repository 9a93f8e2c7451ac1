// Original file: proto/muster/v1/types.proto

import type { FileSystem as _muster_v1_FileSystem, FileSystem__Output as _muster_v1_FileSystem__Output } from '../../muster/v1/FileSystem.ts';

export interface HostFacts {
  'hostname'?: (string);
  'os'?: (string);
  'kernel'?: (string);
  'cpuModel'?: (string);
  'sockets'?: (number);
  'cores'?: (number);
  'threads'?: (number);
  'numaNodes'?: (number);
  'fileSystems'?: (_muster_v1_FileSystem)[];
}

export interface HostFacts__Output {
  'hostname': (string);
  'os': (string);
  'kernel': (string);
  'cpuModel': (string);
  'sockets': (number);
  'cores': (number);
  'threads': (number);
  'numaNodes': (number);
  'fileSystems': (_muster_v1_FileSystem__Output)[];
}
