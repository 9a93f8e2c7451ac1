/** What the sampler hands on after each reading: to the Prometheus page, the conditions and the telemetry upload. */
import type { Gpu, GpuDriver } from '@muster/common/hardware';
import type { TaskRef } from '@muster/common/ids';
import type { GpuProblem, GpuSample } from './gpuSource.ts';

export interface GpuObservation {
  readonly gpus: readonly Gpu[];
  readonly gpuDriver: GpuDriver;
  /** Newest of each GPU, by UUID; a GPU that could not be read this time has none. */
  readonly samples: ReadonlyMap<string, GpuSample>;
  readonly problems: readonly GpuProblem[];
  /** Which task of this node holds each GPU, by UUID. */
  readonly holders: ReadonlyMap<string, TaskRef>;
  /** Wall clock of the reading; 0: there was none yet. */
  readonly atMs: number;
}
