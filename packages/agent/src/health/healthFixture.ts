/** Health for tests: a node with two cards, every value good unless a test sets another. */
import type { Condition } from '@muster/common/conditions';
import { bareGpu, type Gpu } from '@muster/common/hardware';
import type { JobId, TaskRef } from '@muster/common/ids';
import { emptySample, type GpuObservation, type GpuProblem, type GpuSample } from '../gpus/gpuSource.ts';
import { type ConditionTable, defaultConditionTable } from './conditionTable.ts';
import { evaluateConditions, type HealthInput, takeUp, visibleConditions } from './evaluate.ts';
import { parseKernelText } from './kernelLines.ts';
import type { KernelRecord } from './kernelLog.ts';
import { emptyHealthState, type HealthState, type Moment } from './state.ts';

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

/** The health of a node as a value, with readings and announcements that follow each other in time. */
export class HealthNode {
  state: HealthState = emptyHealthState('boot-1');
  uptimeMs = 1_000_000;
  table: ConditionTable = defaultConditionTable;
  private observation: GpuObservation | null = null;

  after(ms: number): this {
    this.uptimeMs += ms;
    return this.takes({ kind: 'tick' });
  }

  reads(parts: ObservationParts = {}): this {
    this.observation = anObservation(parts);
    return this.takes({ kind: 'observation' });
  }

  /** Values of card A; card B is well. */
  samples(values: Partial<GpuSample>, holders: Readonly<Record<string, TaskRef>> = {}): this {
    return this.reads({ samples: [aSample(cardA, values), aSample(cardB)], holders });
  }

  /** Both cards are listed, and the job holds card A. */
  runs(job: string): this {
    return this.reads({ holders: { [cardA]: taskOfJob(job) } });
  }

  /** The kernel log. @param uptimeMs of a line from before the agent started; null: it is printed now */
  prints(text: string, uptimeMs: number | null = null): this {
    for (const fact of parseKernelText(text)) {
      const at = moment(uptimeMs ?? this.uptimeMs);
      this.takes({ kind: 'kernel', fact, at, history: uptimeMs !== null });
    }
    return this;
  }

  /** An Xid of card A in the kernel log. */
  xid(number: number, rest = 'something'): this {
    return this.prints(`NVRM: Xid (PCI:0000:1b:00): ${number}, ${rest}`);
  }

  /** NVML's announcement. */
  announces(xid: number, gpuUuid = cardA): this {
    return this.takes({ kind: 'xid', event: { gpuUuid, xid } });
  }

  takes(input: HealthInput): this {
    const context = { table: this.table, observation: this.observation, now: moment(this.uptimeMs) };
    this.state = evaluateConditions(this.state, input, context);
    return this;
  }

  /** The agent restarts; with another boot id, after a reboot. */
  starts(bootId: string): this {
    if (bootId !== this.state.bootId) this.uptimeMs = 5_000;
    this.state = takeUp(this.state, bootId, this.table);
    return this;
  }

  get conditions(): readonly Condition[] {
    return visibleConditions(this.state);
  }

  get kinds(): readonly string[] {
    return this.conditions.map(({ kind }) => kind);
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.conditions.map(({ kind, count }) => [kind, count]));
  }
}
