/** ValueSource that are sampled at a steady pace: of the GPUs of jobs, of nodes, and of the cluster. */
import type { JobId, NodeName } from '@muster/common/ids';
import type { HostMetricName } from '@muster/common/metricNames';
import type { MetricSeries } from '@muster/common/telemetry';
import type { Positions } from '../metricQuery/positions.ts';
import type { MetricField } from '../telemetry/chunkMemory.ts';
import { type ClusterHistory, clusterKey } from '../telemetry/clusterHistory.ts';
import type { RowHistory } from '../telemetry/rowHistory.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import type { Arrivals } from './arrivals.ts';
import type { ValueSource } from './followValues.ts';

export interface SampledParts {
  readonly telemetry: Pick<TelemetryStore, 'gpuReadings' | 'hosts' | 'hostColumn'>;
  readonly clusterHistory: Pick<ClusterHistory, 'rows' | 'column'>;
  readonly arrivals: Pick<Arrivals, 'follow'>;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
}

/** A time that was restored from a file, or that a client has sent back, may differ by rounding. Samples are seconds apart. */
const roundingMs = 50;

/** Up to when each source was sent: on the monotonic clock, in addition to the position on the wall clock. */
class SentUntil {
  private readonly parts: Pick<SampledParts, 'monotonicMs' | 'wallMs'>;
  private readonly positions: Positions;
  private readonly untilMs = new Map<string, number>();

  constructor(parts: Pick<SampledParts, 'monotonicMs' | 'wallMs'>, positions: Positions) {
    this.parts = parts;
    this.positions = positions;
  }

  /** Wall clock less monotonic clock. */
  get wallOffsetMs(): number {
    return this.parts.wallMs() - this.parts.monotonicMs();
  }

  /** Monotonic. */
  ofSource(source: string): number {
    return this.untilMs.get(source) ?? this.positions.atMsOf(source) - this.wallOffsetMs + roundingMs;
  }

  advance(source: string, endMs: number): void {
    this.untilMs.set(source, endMs);
    this.positions.advance(source, Math.round(endMs + this.wallOffsetMs));
  }
}

export interface GpuValuesOf {
  readonly field: MetricField;
  /** null: of every job that may be read. */
  readonly jobId: JobId | null;
  readonly attempt: number | null;
  readonly node: NodeName | null;
  /** Whether the caller may read the values of this job, and the job belongs to the user or project of the request. */
  readonly isWanted: (jobId: JobId) => boolean | Promise<boolean>;
}

/** By node: all that a node sends comes in its order. */
export class GpuValues implements ValueSource {
  private readonly parts: SampledParts;
  private readonly of: GpuValuesOf;
  private readonly sent: SentUntil;
  /** By node: the jobs of which something has arrived. */
  private readonly arrived = new Map<string, Set<JobId>>();

  constructor(parts: SampledParts, of: GpuValuesOf, positions: Positions) {
    this.parts = parts;
    this.of = of;
    this.sent = new SentUntil(parts, positions);
  }

  follow(onNew: (source: string) => void): () => void {
    return this.parts.arrivals.follow((arrival) => {
      if (arrival.kind === 'gpu' && this.note(arrival)) onNew(arrival.node);
    });
  }

  earlierSources(): Promise<readonly string[]> {
    for (const place of this.parts.telemetry.gpuReadings.places()) this.note(place);
    return Promise.resolve([...this.arrived.keys()]);
  }

  async next(source: string): Promise<readonly MetricSeries[] | null> {
    const jobIds = this.arrived.get(source) ?? new Set();
    this.arrived.delete(source);
    for (const jobId of jobIds) if (!(await this.of.isWanted(jobId))) jobIds.delete(jobId);
    const { field, attempt, jobId: only } = this.of;
    const { wallOffsetMs } = this.sent;
    const page = this.parts.telemetry.gpuReadings.pageAfter(
      { jobIds, node: source as NodeName, field, attempt },
      this.sent.ofSource(source),
      wallOffsetMs,
    );
    if (page === null) return null;
    this.sent.advance(source, page.endMs);
    for (const jobId of jobIds) this.note({ node: source, jobId });
    return page.series.map(({ jobId, ...series }) => (only === null ? { jobId, ...series } : series));
  }

  private note({ node, jobId }: { readonly node: string; readonly jobId: JobId }): boolean {
    const { jobId: only, node: onlyNode } = this.of;
    if ((only !== null && jobId !== only) || (onlyNode !== null && node !== onlyNode)) return false;
    const jobIds = this.arrived.get(node);
    if (jobIds === undefined) this.arrived.set(node, new Set([jobId]));
    else jobIds.add(jobId);
    return true;
  }
}

/** @param node null: of every node */
export function hostValues(
  parts: SampledParts,
  name: HostMetricName,
  node: NodeName | null,
  positions: Positions,
): ValueSource {
  const { hosts } = parts.telemetry;
  return rowValues(hosts, parts.telemetry.hostColumn(name), new SentUntil(parts, positions), {
    follow: (onNew) =>
      parts.arrivals.follow((arrival) => {
        if (arrival.kind === 'host' && (node === null || arrival.node === node)) onNew(arrival.node);
      }),
    earlierSources: () => Promise.resolve(node === null ? hosts.keys : [node]),
    nodeOf: (source) => source,
  });
}

export function clusterValues(parts: SampledParts, name: string, positions: Positions): ValueSource {
  const { rows } = parts.clusterHistory;
  return rowValues(rows, parts.clusterHistory.column(name), new SentUntil(parts, positions), {
    follow: (onNew) =>
      parts.arrivals.follow(({ kind }) => {
        if (kind === 'cluster') onNew(clusterKey);
      }),
    earlierSources: () => Promise.resolve([clusterKey]),
    nodeOf: () => '',
  });
}

function rowValues<Key extends string>(
  rows: Pick<RowHistory<Key>, 'after'>,
  column: number,
  sent: SentUntil,
  source: Pick<ValueSource, 'follow' | 'earlierSources'> & { readonly nodeOf: (key: string) => string },
): ValueSource {
  return {
    follow: source.follow,
    earlierSources: source.earlierSources,
    next(key) {
      const found = rows.after(key as Key, column, sent.ofSource(key));
      const last = found.at(-1);
      if (last === undefined) return Promise.resolve(null);
      const { wallOffsetMs } = sent;
      const points = found.map(({ endMs, value }) => ({ atMs: Math.round(endMs + wallOffsetMs), value }));
      sent.advance(key, last.endMs);
      const node = source.nodeOf(key);
      return Promise.resolve([{ attempt: null, nodeRank: null, node, gpuUuid: '', points }]);
    },
  };
}
