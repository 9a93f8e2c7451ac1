/**
 * The readings that nodes send: the newest of each GPU and host, and those of the GPUs of jobs in the last hours.
 * In memory: Prometheus keeps the long history, and a file lets them survive a restart (telemetryFile.ts).
 */
import type { Clock } from '@muster/common/clock';
import type { NodeInventory } from '@muster/common/hardware';
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import { type HostMetricName, hostMetrics } from '@muster/common/metricNames';
import type {
  GpuReading,
  HostReading,
  MetricPoint,
  MetricSeries,
  NodeTelemetry,
} from '@muster/common/telemetry';
import { heldTask } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';
import { JobReadings, type MetricQuery, type MetricRange, readingAgeMsMax } from './jobReadings.ts';
import { RowHistory } from './rowHistory.ts';

const sweepIntervalMs = 60_000;
/** Of the histories of nodes: some 20 KiB for each of 800 nodes. */
const hostBytesMax = 16 * 1024 * 1024;
export const hostColumns = Object.keys(hostMetrics) as readonly HostMetricName[];

export type DropReason =
  /** A repetition, or older than an earlier reading. */
  | 'stale'
  /** Names a task that the coordinator did not give this node or GPU, or without a reading before it ended. */
  | 'foreign_task'
  /** Of a GPU that is not in the node's inventory. */
  | 'unknown_gpu'
  /** The node sends more than it may. */
  | 'too_fast';

export interface TelemetryStoreParts {
  readonly state: Pick<ClusterState, 'jobs' | 'nodes'>;
  readonly clock: Clock;
  /** For the readings of jobs, all of them together. */
  readonly bytesMax: number;
}

interface Taken<Reading> {
  readonly reading: Reading;
  /** Monotonic. */
  readonly takenMs: number;
}

interface NodeReadings {
  host: Taken<HostReading> | null;
  /** By UUID; only GPUs of the inventory, so that a node cannot fill our memory with names. */
  readonly gpus: Map<string, Taken<GpuReading>>;
}

export class TelemetryStore {
  private readonly parts: TelemetryStoreParts;
  readonly gpuReadings: JobReadings;
  private readonly nodes = new Map<NodeName, NodeReadings>();
  readonly hosts = new RowHistory<NodeName>(hostColumns.length, hostBytesMax);
  /** Monotonic: nothing from before is here. */
  private sinceMs: number;
  /** UUIDs by inventory, which is a new object whenever it changes. */
  private readonly uuids = new WeakMap<NodeInventory, ReadonlySet<string>>();
  private sweptAtMs = 0;
  /** Told of each reading that was taken, with the task that held the GPU. */
  onTaken: (node: NodeName, task: TaskRef | null) => void = () => {};
  /** Readings of GPUs that were taken. */
  taken = 0;
  /** Readings that were not, by why. */
  readonly dropped: Record<DropReason, number> = { stale: 0, foreign_task: 0, unknown_gpu: 0, too_fast: 0 };

  constructor(parts: TelemetryStoreParts) {
    this.parts = parts;
    this.gpuReadings = new JobReadings(parts.bytesMax);
    this.sinceMs = parts.clock.monotonicMs();
  }

  /** Wall clock: what happened before is not in memory. */
  get fromMs(): number {
    const { clock } = this.parts;
    const nowMs = clock.monotonicMs();
    return Math.round(Math.max(this.sinceMs, nowMs - readingAgeMsMax) + clock.wallMs() - nowMs);
  }

  /** Readings from as long ago as that were put back. @param ms monotonic */
  reachesBackTo(ms: number): void {
    this.sinceMs = Math.min(this.sinceMs, ms);
  }

  /** Of whose GPUs there are readings. */
  get jobIds(): readonly JobId[] {
    return this.gpuReadings.jobIds;
  }

  /** Nodes with a history, online or not. */
  get hostNames(): readonly NodeName[] {
    return this.hosts.keys;
  }

  /** What of the budget is in use, and by how many series. */
  get usage(): {
    readonly bytes: number;
    readonly bytesMax: number;
    readonly series: number;
    readonly evicted: number;
  } {
    const { bytes, series, evictedReadings: evicted } = this.gpuReadings;
    return { bytes, bytesMax: this.parts.bytesMax, series, evicted };
  }

  addGpu(node: NodeName, reading: GpuReading): void {
    const { state, clock } = this.parts;
    const inventory = state.nodes.get(node)?.inventory;
    if (inventory === undefined || !this.uuidsOf(inventory).has(reading.gpuUuid)) {
      this.dropped.unknown_gpu += 1;
      return;
    }
    const { gpus } = this.readingsOf(node);
    if (!isNewer(reading.atMs, gpus.get(reading.gpuUuid)?.reading.atMs ?? null)) {
      this.dropped.stale += 1;
      return;
    }
    const { task } = reading;
    const isForeign = task !== null && !this.isHolder(task, node, reading.gpuUuid);
    const nowMs = clock.monotonicMs();
    const takenMs = takenAtMs(reading.atMs, clock.wallMs(), nowMs);
    // The node decides what the GPU does, and the coordinator for which task.
    gpus.set(reading.gpuUuid, { reading: isForeign ? { ...reading, task: null } : reading, takenMs });
    if (isForeign) {
      this.dropped.foreign_task += 1;
      return;
    }
    this.taken += 1;
    if (task !== null) this.gpuReadings.append(task, node, reading, takenMs, nowMs);
    this.onTaken(node, task);
  }

  addHost(node: NodeName, reading: HostReading): void {
    const { state, clock } = this.parts;
    if (!state.nodes.has(node)) return;
    const readings = this.readingsOf(node);
    if (!isNewer(reading.atMs, readings.host?.reading.atMs ?? null)) return;
    const takenMs = takenAtMs(reading.atMs, clock.wallMs(), clock.monotonicMs());
    readings.host = { reading, takenMs };
    this.hosts.add(
      node,
      takenMs,
      hostColumns.map((name) => reading[hostMetrics[name]]),
    );
    this.onTaken(node, null);
  }

  /** Where its values are in `hosts`. */
  hostColumn(name: HostMetricName): number {
    return hostColumns.indexOf(name);
  }

  /** What a node did, oldest first. @param fromMs wall clock, as `toMs` */
  hostPoints(node: NodeName, name: HostMetricName, fromMs: number, toMs: number): readonly MetricPoint[] {
    const { clock } = this.parts;
    const wallOffsetMs = clock.wallMs() - clock.monotonicMs();
    return this.hosts.points(
      node,
      this.hostColumn(name),
      fromMs - wallOffsetMs,
      toMs - wallOffsetMs,
      wallOffsetMs,
    );
  }

  query(query: MetricQuery): readonly MetricSeries[] {
    const { clock } = this.parts;
    return this.gpuReadings.query(query, clock.monotonicMs(), clock.wallMs());
  }

  /** @returns how many points a query would answer, or a few more */
  countPoints({ jobId, sinceMs, attempt }: MetricRange): number {
    return this.gpuReadings.countReadings(jobId, sinceMs, attempt, this.parts.clock.monotonicMs());
  }

  /** In the order of the inventory. GPUs without a reading are omitted. Times are by our clock. */
  newest(node: NodeName): NodeTelemetry {
    const { state, clock } = this.parts;
    const readings = this.nodes.get(node);
    const wallOffsetMs = clock.wallMs() - clock.monotonicMs();
    const shown = <Reading>({ reading, takenMs }: Taken<Reading>) => ({
      ...reading,
      atMs: Math.round(takenMs + wallOffsetMs),
    });
    const gpus = (state.nodes.get(node)?.inventory.gpus ?? []).flatMap(({ uuid }) => {
      const taken = readings?.gpus.get(uuid);
      return taken === undefined ? [] : [shown(taken)];
    });
    return { node, host: readings?.host == null ? null : shown(readings.host), gpus };
  }

  /** Lets go of what is too old and of what is no more. May be called at any time; once a minute it does something. */
  sweep(): void {
    const { state, clock } = this.parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.sweptAtMs < sweepIntervalMs) return;
    this.sweptAtMs = nowMs;
    const isActive = (jobId: JobId) => state.jobs.has(jobId);
    this.gpuReadings.sweep(nowMs, isActive);
    this.hosts.sweep(nowMs - readingAgeMsMax);
    for (const [name, { gpus }] of this.nodes) {
      const inventory = state.nodes.get(name)?.inventory;
      if (inventory === undefined) {
        this.nodes.delete(name);
        continue;
      }
      const known = this.uuidsOf(inventory);
      for (const uuid of gpus.keys()) if (!known.has(uuid)) gpus.delete(uuid);
    }
  }

  /**
   * Does the task hold this GPU of the node, or did it a while ago? What a task did last comes after its end, and ten
   * minutes of it after a coordinator that was away: it belongs to the series that began while the task held the GPU.
   */
  private isHolder(task: TaskRef, node: NodeName, gpuUuid: string): boolean {
    const held = heldTask(this.parts.state.jobs.get(task.jobId), task, node);
    return held?.gpuUuids.includes(gpuUuid) === true || this.gpuReadings.knows(task, node, gpuUuid);
  }

  private readingsOf(node: NodeName): NodeReadings {
    let readings = this.nodes.get(node);
    if (readings === undefined) {
      readings = { host: null, gpus: new Map() };
      this.nodes.set(node, readings);
    }
    return readings;
  }

  private uuidsOf(inventory: NodeInventory): ReadonlySet<string> {
    let uuids = this.uuids.get(inventory);
    if (uuids === undefined) {
      uuids = new Set(inventory.gpus.map(({ uuid }) => uuid));
      this.uuids.set(inventory, uuids);
    }
    return uuids;
  }
}

/** Agents keep ten minutes while they are cut off. What seems later than that, and a margin, is of a clock that is behind. */
export const latenessMsMax = 15 * 60_000;

/** A clock that went back by more than this was set; by less, the message is an old one. */
export const staleMsMax = 60_000;

/**
 * @param nodeMs end of the interval by the node's wall clock
 * @param wallMs ours, now
 * @param monotonicMs ours, now
 * @returns end of the interval on our monotonic clock, at most now
 */
export function takenAtMs(nodeMs: number, wallMs: number, monotonicMs: number): number {
  const lateMs = wallMs - nodeMs;
  const isCredible = lateMs >= 0 && lateMs <= latenessMsMax;
  return Math.round(monotonicMs - (isCredible ? lateMs : 0));
}

/**
 * Whether this is neither a repetition nor older than an earlier reading.
 * @param lastNodeMs of the newest one taken, by the node's clock; null: none
 */
export function isNewer(nodeMs: number, lastNodeMs: number | null): boolean {
  return lastNodeMs === null || nodeMs > lastNodeMs || nodeMs < lastNodeMs - staleMsMax;
}
