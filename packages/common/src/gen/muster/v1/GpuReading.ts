// Original file: proto/muster/v1/types.proto

import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from '../../muster/v1/TaskRef.ts';
import type { Long } from '@grpc/proto-loader';

export interface GpuReading {
  'gpuUuid'?: (string);
  'atMs'?: (number | string | Long);
  'intervalMs'?: (number);
  'task'?: (_muster_v1_TaskRef | null);
  'utilization'?: (number | string);
  'memoryUsedMb'?: (number);
  'powerWatts'?: (number | string);
  'energyJoules'?: (number | string);
  'smActive'?: (number | string);
  'tensorActive'?: (number | string);
  'dramActive'?: (number | string);
  'temperature'?: (number | string);
  'nvlinkReceiveBytes'?: (number | string);
  'nvlinkTransmitBytes'?: (number | string);
  '_utilization'?: "utilization";
  '_memoryUsedMb'?: "memoryUsedMb";
  '_powerWatts'?: "powerWatts";
  '_energyJoules'?: "energyJoules";
  '_smActive'?: "smActive";
  '_tensorActive'?: "tensorActive";
  '_dramActive'?: "dramActive";
  '_temperature'?: "temperature";
  '_nvlinkReceiveBytes'?: "nvlinkReceiveBytes";
  '_nvlinkTransmitBytes'?: "nvlinkTransmitBytes";
}

export interface GpuReading__Output {
  'gpuUuid': (string);
  'atMs': (number);
  'intervalMs': (number);
  'task': (_muster_v1_TaskRef__Output | null);
  'utilization'?: (number);
  'memoryUsedMb'?: (number);
  'powerWatts'?: (number);
  'energyJoules'?: (number);
  'smActive'?: (number);
  'tensorActive'?: (number);
  'dramActive'?: (number);
  'temperature'?: (number);
  'nvlinkReceiveBytes'?: (number);
  'nvlinkTransmitBytes'?: (number);
  '_utilization'?: "utilization";
  '_memoryUsedMb'?: "memoryUsedMb";
  '_powerWatts'?: "powerWatts";
  '_energyJoules'?: "energyJoules";
  '_smActive'?: "smActive";
  '_tensorActive'?: "tensorActive";
  '_dramActive'?: "dramActive";
  '_temperature'?: "temperature";
  '_nvlinkReceiveBytes'?: "nvlinkReceiveBytes";
  '_nvlinkTransmitBytes'?: "nvlinkTransmitBytes";
}
