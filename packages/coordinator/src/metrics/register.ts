/** Metrics whose values lie elsewhere and are read when somebody asks for the page. */
import { Counter, Gauge, type Registry } from 'prom-client';
import { currentAttempt, type Job } from '../model.ts';
import type { ClusterState } from '../state/state.ts';

type Labels = Readonly<Record<string, string | number>>;

interface ReadMetric<Label extends string = string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly Label[];
  /** One value, or each with its labels. What is not among them any longer is gone from the page. */
  readonly read: () => number | Iterable<readonly [labels: Labels, value: number]>;
}

export function addGauge(registry: Registry, { read, labelNames = [], ...metric }: ReadMetric): void {
  const gauge = new Gauge({
    ...metric,
    labelNames: [...labelNames],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of samplesOf(read())) this.set({ ...labels }, value);
    },
  });
  gauge.reset();
}

/** For counts that never go back while the process lives. */
export function addCounter(registry: Registry, { read, labelNames = [], ...metric }: ReadMetric): void {
  const counter = new Counter({
    ...metric,
    labelNames: [...labelNames],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of samplesOf(read())) this.inc({ ...labels }, value);
    },
  });
  counter.reset();
}

function samplesOf(read: ReturnType<ReadMetric['read']>): Iterable<readonly [Labels, number]> {
  return typeof read === 'number' ? [[{}, read]] : read;
}

export const namedJobsMax = 1_000;

export function namedJobs({ jobs }: Pick<ClusterState, 'jobs'>): readonly Job[] {
  return [...jobs.values()].filter((job) => currentAttempt(job) !== null).slice(0, namedJobsMax);
}
