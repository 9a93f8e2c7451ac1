// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface GpuUsage {
  'gpus'?: (number);
  'observedGpuSeconds'?: (number | string);
  'utilizationMean'?: (number | string);
  'utilizationPeak'?: (number | string);
  'memoryPeakMb'?: (number | string | Long);
  'energyKwh'?: (number | string);
  'idleGpuSeconds'?: (number | string);
  'smActiveMean'?: (number | string);
  'tensorActiveMean'?: (number | string);
  '_utilizationMean'?: "utilizationMean";
  '_utilizationPeak'?: "utilizationPeak";
  '_memoryPeakMb'?: "memoryPeakMb";
  '_energyKwh'?: "energyKwh";
  '_idleGpuSeconds'?: "idleGpuSeconds";
  '_smActiveMean'?: "smActiveMean";
  '_tensorActiveMean'?: "tensorActiveMean";
}

export interface GpuUsage__Output {
  'gpus': (number);
  'observedGpuSeconds': (number);
  'utilizationMean'?: (number);
  'utilizationPeak'?: (number);
  'memoryPeakMb'?: (number);
  'energyKwh'?: (number);
  'idleGpuSeconds'?: (number);
  'smActiveMean'?: (number);
  'tensorActiveMean'?: (number);
  '_utilizationMean'?: "utilizationMean";
  '_utilizationPeak'?: "utilizationPeak";
  '_memoryPeakMb'?: "memoryPeakMb";
  '_energyKwh'?: "energyKwh";
  '_idleGpuSeconds'?: "idleGpuSeconds";
  '_smActiveMean'?: "smActiveMean";
  '_tensorActiveMean'?: "tensorActiveMean";
}
