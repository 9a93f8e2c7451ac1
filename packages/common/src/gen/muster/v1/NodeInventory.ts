// Original file: proto/muster/v1/types.proto

import type { Gpu as _muster_v1_Gpu, Gpu__Output as _muster_v1_Gpu__Output } from '../../muster/v1/Gpu.ts';
import type { GpuDriver as _muster_v1_GpuDriver, GpuDriver__Output as _muster_v1_GpuDriver__Output } from '../../muster/v1/GpuDriver.ts';
import type { DeviceLink as _muster_v1_DeviceLink, DeviceLink__Output as _muster_v1_DeviceLink__Output } from '../../muster/v1/DeviceLink.ts';
import type { Nic as _muster_v1_Nic, Nic__Output as _muster_v1_Nic__Output } from '../../muster/v1/Nic.ts';
import type { RdmaDevice as _muster_v1_RdmaDevice, RdmaDevice__Output as _muster_v1_RdmaDevice__Output } from '../../muster/v1/RdmaDevice.ts';
import type { HostFacts as _muster_v1_HostFacts, HostFacts__Output as _muster_v1_HostFacts__Output } from '../../muster/v1/HostFacts.ts';
import type { MachineFacts as _muster_v1_MachineFacts, MachineFacts__Output as _muster_v1_MachineFacts__Output } from '../../muster/v1/MachineFacts.ts';
import type { Long } from '@grpc/proto-loader';

export interface NodeInventory {
  'gpus'?: (_muster_v1_Gpu)[];
  'cpus'?: (number);
  'memoryMb'?: (number | string | Long);
  'addresses'?: (string)[];
  'labels'?: ({[key: string]: string});
  'drivers'?: (string)[];
  'gpuDriver'?: (_muster_v1_GpuDriver | null);
  'links'?: (_muster_v1_DeviceLink)[];
  'nics'?: (_muster_v1_Nic)[];
  'rdmaDevices'?: (_muster_v1_RdmaDevice)[];
  'host'?: (_muster_v1_HostFacts | null);
  'machine'?: (_muster_v1_MachineFacts | null);
}

export interface NodeInventory__Output {
  'gpus': (_muster_v1_Gpu__Output)[];
  'cpus': (number);
  'memoryMb': (number);
  'addresses': (string)[];
  'labels': ({[key: string]: string});
  'drivers': (string)[];
  'gpuDriver': (_muster_v1_GpuDriver__Output | null);
  'links': (_muster_v1_DeviceLink__Output)[];
  'nics': (_muster_v1_Nic__Output)[];
  'rdmaDevices': (_muster_v1_RdmaDevice__Output)[];
  'host': (_muster_v1_HostFacts__Output | null);
  'machine': (_muster_v1_MachineFacts__Output | null);
}
