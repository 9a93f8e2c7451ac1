// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface HostReading {
  'atMs'?: (number | string | Long);
  'intervalMs'?: (number);
  'cpuUtilization'?: (number | string);
  'memoryUsedMb'?: (number | string | Long);
  'load1'?: (number | string);
  'networkReceiveBytes'?: (number | string);
  'networkTransmitBytes'?: (number | string);
  '_cpuUtilization'?: "cpuUtilization";
  '_memoryUsedMb'?: "memoryUsedMb";
  '_load1'?: "load1";
  '_networkReceiveBytes'?: "networkReceiveBytes";
  '_networkTransmitBytes'?: "networkTransmitBytes";
}

export interface HostReading__Output {
  'atMs': (number);
  'intervalMs': (number);
  'cpuUtilization'?: (number);
  'memoryUsedMb'?: (number);
  'load1'?: (number);
  'networkReceiveBytes'?: (number);
  'networkTransmitBytes'?: (number);
  '_cpuUtilization'?: "cpuUtilization";
  '_memoryUsedMb'?: "memoryUsedMb";
  '_load1'?: "load1";
  '_networkReceiveBytes'?: "networkReceiveBytes";
  '_networkTransmitBytes'?: "networkTransmitBytes";
}
