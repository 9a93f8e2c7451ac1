/** How reading the GPUs went: how long it took, and how often and why it failed. */
import type { GpuSourceName, ProfilingSourceName } from '@muster/common/hardware';
import type { GpuProblem } from '../gpus/gpuSource.ts';
import type { Family, MetricSample } from './textFormat.ts';

type SourceName = GpuSourceName | ProfilingSourceName;

/** Upper bounds in seconds: NVML takes milliseconds, nvidia-smi tenths of a second to seconds, a hung driver for ever. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Durations {
  /** Of each bound, and of everything above the last. */
  readonly counts: number[];
  sum: number;
}

export class GpuReads {
  private readonly durations = new Map<SourceName, Durations>();
  private readonly failures = new Map<SourceName, Map<GpuProblem['kind'], number>>();

  /** A reading that came to an end, well or not. */
  took(source: SourceName, seconds: number): void {
    const found = this.durations.get(source) ?? { counts: Array<number>(bounds.length + 1).fill(0), sum: 0 };
    this.durations.set(source, found);
    const reached = bounds.findIndex((bound) => seconds <= bound);
    const bucket = reached === -1 ? bounds.length : reached;
    found.counts[bucket] = (found.counts[bucket] ?? 0) + 1;
    found.sum += seconds;
  }

  failed(source: SourceName, kind: GpuProblem['kind']): void {
    const kinds = this.failures.get(source) ?? new Map<GpuProblem['kind'], number>();
    this.failures.set(source, kinds);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }

  families(): readonly Family[] {
    return [
      {
        name: 'muster_agent_gpu_read_seconds',
        type: 'histogram',
        help: 'Time that one reading of all GPUs took.',
        rows: Array.from(this.durations, ([source, { counts, sum }]) =>
          histogram(source, counts, sum),
        ).flat(),
      },
      {
        name: 'muster_agent_gpu_read_failures_total',
        type: 'counter',
        help: 'Readings of GPUs that failed, by what was wrong.',
        rows: Array.from(this.failures, ([source, kinds]) =>
          Array.from(kinds, ([kind, value]) => ({
            labels: [
              ['source', source],
              ['kind', kind],
            ] as const,
            value,
          })),
        ).flat(),
      },
    ];
  }
}

function histogram(source: SourceName, counts: readonly number[], sum: number): readonly MetricSample[] {
  const labels = [['source', source]] as const;
  let count = 0;
  const buckets = counts.map((each, index) => {
    count += each;
    const bound = bounds[index]?.toString() ?? '+Inf';
    return { suffix: '_bucket', labels: [...labels, ['le', bound] as const], value: count };
  });
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: count }];
}
