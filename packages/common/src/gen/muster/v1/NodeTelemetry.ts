// Original file: proto/muster/v1/muster.proto

import type { HostReading as _muster_v1_HostReading, HostReading__Output as _muster_v1_HostReading__Output } from '../../muster/v1/HostReading.ts';
import type { GpuReading as _muster_v1_GpuReading, GpuReading__Output as _muster_v1_GpuReading__Output } from '../../muster/v1/GpuReading.ts';

export interface NodeTelemetry {
  'node'?: (string);
  'host'?: (_muster_v1_HostReading | null);
  'gpus'?: (_muster_v1_GpuReading)[];
}

export interface NodeTelemetry__Output {
  'node': (string);
  'host': (_muster_v1_HostReading__Output | null);
  'gpus': (_muster_v1_GpuReading__Output)[];
}
