// Original file: proto/muster/v1/agent.proto

import type { GpuReading as _muster_v1_GpuReading, GpuReading__Output as _muster_v1_GpuReading__Output } from '../../muster/v1/GpuReading.ts';
import type { HostReading as _muster_v1_HostReading, HostReading__Output as _muster_v1_HostReading__Output } from '../../muster/v1/HostReading.ts';
import type { MetricsPage as _muster_v1_MetricsPage, MetricsPage__Output as _muster_v1_MetricsPage__Output } from '../../muster/v1/MetricsPage.ts';
import type { TrainingReading as _muster_v1_TrainingReading, TrainingReading__Output as _muster_v1_TrainingReading__Output } from '../../muster/v1/TrainingReading.ts';

export interface TelemetryUpload {
  'gpus'?: (_muster_v1_GpuReading)[];
  'host'?: (_muster_v1_HostReading | null);
  'page'?: (_muster_v1_MetricsPage | null);
  'training'?: (_muster_v1_TrainingReading)[];
}

export interface TelemetryUpload__Output {
  'gpus': (_muster_v1_GpuReading__Output)[];
  'host': (_muster_v1_HostReading__Output | null);
  'page': (_muster_v1_MetricsPage__Output | null);
  'training': (_muster_v1_TrainingReading__Output)[];
}
