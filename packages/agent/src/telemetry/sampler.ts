/**
 * Looks at the GPUs and the host at a steady pace, and hands on what it saw: the newest observation to the Prometheus page
 * and to the judge of the node's health, readings of ten seconds to the coordinator, totals to the usage of each task.
 *
 * Everything it calls answers within a deadline, so nothing here can wait for a driver that hangs; and nobody waits for
 * the sampler.
 */
import { messageOf } from '@muster/common/errors';
import type { GpuDriver, GpuSourceName, ProfilingSourceName } from '@muster/common/hardware';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type GpuReading, type HostReading, readingIntervalMs } from '@muster/common/telemetry';
import {
  emptyListing,
  type GpuListing,
  type GpuObservation,
  type GpuProblem,
  type GpuSample,
  type GpuSampling,
  nodeProblem,
} from '../gpus/gpuSource.ts';
import { Intervals } from './intervals.ts';
import type { UsageMeter } from './usageMeter.ts';

/** Both answer within a deadline of their own. */
export interface GpuReadings {
  list(): Promise<GpuListing>;
  sample(): Promise<GpuSampling>;
}

export interface SamplerParts {
  readonly gpus: GpuReadings;
  readonly sourceName: GpuSourceName;
  /** Some are known only once the GPUs were listed. */
  readonly profilingSource: () => ProfilingSourceName | null;
  /** Between two samples. */
  readonly intervalMs: number;
  /** Between two listings. What goes wrong asks for one at once. */
  readonly listIntervalMs: number;
  /** Which task holds each GPU, by UUID. */
  readonly holders: () => ReadonlyMap<string, TaskRef>;
  /** Whether a GPU was listed before and is missing now: only a listing shows that it is back. */
  readonly isGpuMissing: () => boolean;
  /** The host since it was asked last. */
  readonly readHost: () => Promise<HostReading | null>;
  readonly meter: UsageMeter;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly log: Logger;
  /** A reading of the GPUs has come to an end, well or not. */
  readonly onRead: (seconds: number, problems: readonly GpuProblem[]) => void;
  readonly onObservation: (observation: GpuObservation) => void;
  readonly onReadings: (gpus: readonly GpuReading[], host: HostReading | null) => void;
}

/** A driver whose problems come and go must not be listed, for seconds of CPU time, at every sample. */
const relistMs = 10_000;
/** While the last listing did not show every GPU that there may be: one that is well again is back within a minute. */
const troubledListMs = 30_000;
/** What stays as it is until somebody changes the node, and hides no GPU. */
const lasting: ReadonlySet<GpuProblem['kind']> = new Set(['unreadable', 'no_instances']);
/** A listing of a driver that hangs takes a minute, in which nothing is sampled: what was read before it is history then. */
const staleMs = 15_000;

export class TelemetrySampler {
  private readonly parts: SamplerParts;
  private readonly intervals: Intervals;
  private listing: GpuListing = emptyListing;
  private samples: ReadonlyMap<string, GpuSample> = new Map();
  private problems: readonly GpuProblem[] = [];
  private listedMs = Number.NEGATIVE_INFINITY;
  private listedProblems = '';
  private closedMs: number;
  /** Of a listing for new problems. */
  private relistedMs = Number.NEGATIVE_INFINITY;
  /** Monotonic, and by the wall clock. */
  private sampledMs = Number.NEGATIVE_INFINITY;
  private sampledAtMs = 0;
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;
  /** Readings of tasks that gave their GPU away within the interval. */
  private readonly handedOver: GpuReading[] = [];
  private lastError = '';

  constructor(parts: SamplerParts) {
    this.parts = parts;
    this.intervals = new Intervals(parts.intervalMs);
    this.closedMs = parts.monotonicMs();
  }

  /** Lists and reads once, then keeps sampling. Resolves within the deadlines of the source. */
  async start(): Promise<void> {
    await this.list();
    await this.tick();
  }

  close(): void {
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  observation(): GpuObservation {
    const { driverVersion, cudaVersion, gpus } = this.listing;
    const gpuDriver: GpuDriver = {
      source: this.parts.sourceName,
      profilingSource: this.parts.profilingSource(),
      driverVersion,
      cudaVersion,
    };
    return {
      gpus,
      gpuDriver,
      samples: this.isStale() ? new Map() : this.samples,
      problems: [...this.listing.problems, ...this.problems],
      holders: this.parts.holders(),
      atMs: this.sampledAtMs,
    };
  }

  private isStale(): boolean {
    const { intervalMs, monotonicMs } = this.parts;
    return monotonicMs() - this.sampledMs > Math.max(staleMs, 3 * intervalMs);
  }

  /** As last listed. */
  get lastListing(): GpuListing {
    return this.listing;
  }

  private async tick(): Promise<void> {
    if (this.isClosed) return;
    const startedMs = this.parts.monotonicMs();
    try {
      if (this.isListingDue(startedMs)) await this.list();
      await this.sample();
      await this.closeInterval();
      this.lastError = '';
    } catch (error) {
      this.complain(error);
    }
    if (this.isClosed) return;
    const spentMs = this.parts.monotonicMs() - startedMs;
    this.timer = setTimeout(() => void this.tick(), Math.max(0, this.parts.intervalMs - spentMs));
  }

  /** At intervals, and soon when problems changed: a GPU that fails may be gone, and one that answers again may be back. */
  private isListingDue(nowMs: number): boolean {
    const { listIntervalMs } = this.parts;
    const intervalMs = this.isListingTroubled() ? Math.min(troubledListMs, listIntervalMs) : listIntervalMs;
    if (nowMs - this.listedMs >= intervalMs) return true;
    if (problemsText(this.problems) === this.listedProblems || nowMs - this.relistedMs < relistMs)
      return false;
    this.relistedMs = nowMs;
    return true;
  }

  private isListingTroubled(): boolean {
    const { gpus, problems } = this.listing;
    return this.parts.isGpuMissing() || problems.some(({ kind }) => gpus.length === 0 || !lasting.has(kind));
  }

  private async list(): Promise<void> {
    this.listedMs = this.parts.monotonicMs();
    this.listedProblems = problemsText(this.problems);
    try {
      this.listing = await this.parts.gpus.list();
    } catch (error) {
      // What was listed before is still the best guess of what the node has; that it does not answer is a problem.
      this.listing = { ...this.listing, problems: [unreadable(error)] };
      this.complain(error);
    }
  }

  private async sample(): Promise<void> {
    let sampling: GpuSampling;
    const startedMs = this.parts.monotonicMs();
    try {
      sampling = await this.parts.gpus.sample();
    } catch (error) {
      sampling = { samples: [], problems: [unreadable(error)] };
      this.complain(error);
    }
    const monotonicMs = this.parts.monotonicMs();
    const wallMs = this.parts.wallMs();
    this.parts.onRead((monotonicMs - startedMs) / 1000, sampling.problems);
    this.samples = new Map(sampling.samples.map((each) => [each.uuid, each]));
    this.problems = sampling.problems;
    this.sampledMs = monotonicMs;
    this.sampledAtMs = wallMs;
    const holders = this.parts.holders();
    for (const each of sampling.samples) {
      const task = holders.get(each.uuid) ?? null;
      const ended = this.intervals.add(each, task, monotonicMs, wallMs);
      if (ended !== null) this.handedOver.push(ended);
      if (task !== null) this.parts.meter.add(task, each, monotonicMs);
    }
    this.parts.onObservation(this.observation());
  }

  private async closeInterval(): Promise<void> {
    const nowMs = this.parts.monotonicMs();
    if (nowMs - this.closedMs < readingIntervalMs - this.parts.intervalMs / 2) return;
    this.closedMs = nowMs;
    const readings = [...this.handedOver.splice(0), ...this.intervals.close(this.parts.wallMs())];
    for (const reading of readings) this.parts.meter.addReading(reading);
    this.parts.meter.save([...new Set(this.parts.holders().values())]);
    this.parts.onReadings(readings, await this.parts.readHost());
  }

  /** Once for each new reason, not once a second. */
  private complain(error: unknown): void {
    const text = messageOf(error);
    if (text === this.lastError) return;
    this.lastError = text;
    this.parts.log.warn({ error: text }, 'the GPUs could not be read');
  }
}

function problemsText(problems: readonly GpuProblem[]): string {
  return problems
    .map(({ kind, gpuUuid, pciBusId }) => `${kind}/${gpuUuid}/${pciBusId}`)
    .sort()
    .join(' ');
}

function unreadable(error: unknown): GpuProblem {
  const message = messageOf(error);
  return nodeProblem('unreadable', message, message);
}
