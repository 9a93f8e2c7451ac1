/** Health for tests: a node with two cards, every value well unless a test says otherwise. */
import type { Gpu } from '@muster/common/hardware';
import { bareGpu } from '@muster/common/hardware';
import type { JobId, TaskRef } from '@muster/common/ids';
import { emptySample, type GpuProblem, type GpuSample } from '../gpus/gpuSource.ts';
import type { GpuObservation } from '../gpus/observation.ts';
import type { KernelRecord } from './kernelRecord.ts';
import type { Moment } from './state.ts';

export const cardA = 'GPU-aaaaaaaa-0000-4000-8000-000000000001';
export const cardB = 'GPU-bbbbbbbb-0000-4000-8000-000000000002';
export const pciA = '00000000:1b:00.0';
export const pciB = '00000000:5c:00.0';

export const gpuA: Gpu = { ...bareGpu(cardA), model: 'Test GPU', index: 0, pciBusId: pciA };
export const gpuB: Gpu = { ...bareGpu(cardB), model: 'Test GPU', index: 1, pciBusId: pciB };

export function taskOfJob(letter: string): TaskRef {
  return { jobId: `job_${letter.repeat(12)}` as JobId, attempt: 1, nodeRank: 0 };
}

export interface ObservationParts {
  readonly gpus?: readonly Gpu[];
  readonly samples?: readonly GpuSample[];
  readonly problems?: readonly GpuProblem[];
  readonly holders?: Readonly<Record<string, TaskRef>>;
  readonly source?: GpuObservation['gpuDriver']['source'];
}

/** Without samples given, each listed GPU was read and nothing is wrong with it. */
export function anObservation(parts: ObservationParts = {}): GpuObservation {
  const gpus = parts.gpus ?? [gpuA, gpuB];
  const samples = parts.samples ?? gpus.map(({ uuid }) => aSample(uuid));
  return {
    gpus,
    gpuDriver: {
      source: parts.source ?? 'nvml',
      profilingSource: null,
      driverVersion: null,
      cudaVersion: null,
    },
    samples: new Map(samples.map((sample) => [sample.uuid, sample])),
    problems: parts.problems ?? [],
    holders: new Map(Object.entries(parts.holders ?? {})),
    atMs: 1_700_000_000_000,
  };
}

export function aSample(uuid: string, values: Partial<GpuSample> = {}): GpuSample {
  return { ...emptySample(uuid), ...values };
}

export function aProblem(kind: GpuProblem['kind'], place: Partial<GpuProblem> = {}): GpuProblem {
  return { kind, gpuUuid: null, pciBusId: null, message: 'it failed.', evidence: 'what was read', ...place };
}

export const bootedAtMs = 1_700_000_000_000;

export function moment(uptimeMs: number): Moment {
  return { wallMs: bootedAtMs + uptimeMs, uptimeMs };
}

export class FakeTime {
  uptimeMs = 1_000_000;
  readonly now = (): Moment => moment(this.uptimeMs);

  pass(ms: number): void {
    this.uptimeMs += ms;
  }
}

export function aRecord(sequence: number, text: string, values: Partial<KernelRecord> = {}): KernelRecord {
  return { fromKernel: true, sequence, uptimeMs: 0, text, ...values };
}
