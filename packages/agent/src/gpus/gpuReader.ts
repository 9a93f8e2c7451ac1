/**
 * The one way to the GPUs for the rest of the agent. Behind it is a source that may hang, fail or lie; in front of it
 * nobody ever waits longer than a deadline, nothing is thrown, and a call that is still under way is never made a second
 * time. What is not read now is absent, never what was read before.
 */
import { withDeadline } from '@muster/common/async';
import type { Clock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import type { GpuSourceName } from '@muster/common/hardware';
import type { Logger } from '@muster/common/log';
import {
  emptyActivity,
  emptyListing,
  type GpuActivity,
  type GpuListing,
  type GpuProblem,
  type GpuSample,
  type GpuSampling,
  type GpuSource,
  nodeProblem,
  type ProfilingSource,
  type XidEvent,
} from './gpuSource.ts';

export interface GpuReaderDeadlines {
  readonly listMs: number;
  /** Longer than the source's own, which knows which GPU it is that hangs. */
  readonly sampleMs: number;
  readonly profilingMs: number;
}

export const gpuReaderDeadlines: GpuReaderDeadlines = {
  listMs: 70_000,
  sampleMs: 5_000,
  profilingMs: 2_000,
};

export interface GpuReaderOptions {
  readonly source: GpuSource;
  /** Activity from here goes before that of the source; null: there is none. */
  readonly profiling: ProfilingSource | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly deadlines?: Partial<GpuReaderDeadlines>;
}

export class GpuReader {
  private readonly options: GpuReaderOptions;
  private readonly deadlines: GpuReaderDeadlines;
  private readonly sourceLane: Lane;
  private readonly profilingLane: Lane;
  private listing: GpuListing = emptyListing;
  private lastProfilingError: string | null = null;

  constructor(options: GpuReaderOptions) {
    this.options = options;
    this.deadlines = { ...gpuReaderDeadlines, ...options.deadlines };
    this.sourceLane = new Lane(options.clock);
    this.profilingLane = new Lane(options.clock);
  }

  get sourceName(): GpuSourceName {
    return this.options.source.name;
  }

  /** Why the profiling source gave nothing the last time, one sentence; null: it did, or there is none. */
  get profilingError(): string | null {
    return this.lastProfilingError;
  }

  /** Xids that the driver announces; nothing ever comes where the source has no events. */
  onXid(listener: (event: XidEvent) => void): void {
    this.options.source.onXid?.(listener);
  }

  /**
   * Never rejects and takes no longer than the deadline. Where the source does not answer, the GPUs are those of the last
   * listing, because hardware does not vanish for a driver that hangs, and `problems` names the reason.
   */
  async list(): Promise<GpuListing> {
    const { source } = this.options;
    const outcome = await this.sourceLane.run('list', () => source.list(), this.deadlines.listMs);
    if (outcome.kind === 'done') this.listing = outcome.value;
    return outcome.kind === 'done'
      ? outcome.value
      : { ...this.listing, problems: this.problemsOf(outcome, 'list') };
  }

  /** Never rejects and takes no longer than the deadline. A GPU that was not read has no sample. */
  async sample(): Promise<GpuSampling> {
    const { source } = this.options;
    const [outcome, activities] = await Promise.all([
      this.sourceLane.run('sample', () => source.sample(), this.deadlines.sampleMs),
      this.sampleProfiling(),
    ]);
    if (outcome.kind !== 'done') return { samples: [], problems: this.problemsOf(outcome, 'sample') };
    const { samples, problems } = outcome.value;
    return {
      samples: activities === null ? samples : samples.map((sample) => withActivity(sample, activities)),
      problems,
    };
  }

  /** Resolves when nothing of the sources runs any longer. A source that hangs in the kernel never gets there. */
  async close(): Promise<void> {
    await Promise.all([this.options.source.close(), this.options.profiling?.close()]);
  }

  private async sampleProfiling(): Promise<ReadonlyMap<string, GpuActivity> | null> {
    const { profiling, log } = this.options;
    if (profiling === null) return null;
    const outcome = await this.profilingLane.run(
      'sample',
      () => profiling.sample(),
      this.deadlines.profilingMs,
    );
    const before = this.lastProfilingError;
    this.lastProfilingError = profilingErrorOf(outcome, profiling.name, this.deadlines.profilingMs);
    if (this.lastProfilingError !== null && this.lastProfilingError !== before) {
      log.warn({ source: profiling.name }, this.lastProfilingError);
    }
    return outcome.kind === 'done' ? outcome.value : null;
  }

  private problemsOf(outcome: NotDone, call: 'list' | 'sample'): readonly GpuProblem[] {
    const { name } = this.options.source;
    switch (outcome.kind) {
      case 'waiting':
        return [];
      case 'failed':
        return [nodeProblem('unknown_error', messageOf(outcome.error), `${name} failed to ${call}`)];
      case 'hung':
        return [
          nodeProblem(
            'hung',
            `${name} does not answer on this node: look at the kernel log, drain the node and reboot it`,
            `no answer to ${outcome.call} for ${Math.round(outcome.forMs / 1000)} s`,
          ),
        ];
      default:
        return outcome satisfies never;
    }
  }
}

function profilingErrorOf(outcome: Outcome<unknown>, name: string, deadlineMs: number): string | null {
  if (outcome.kind === 'failed') return messageOf(outcome.error);
  return outcome.kind === 'done' ? null : `${name} has not answered within ${deadlineMs} ms`;
}

/** Value by value: a profiling source may know only some of them. */
function withActivity(sample: GpuSample, activities: ReadonlyMap<string, GpuActivity>): GpuSample {
  const measured = activities.get(sample.uuid);
  if (measured === undefined) return sample;
  const own = sample.activity ?? emptyActivity;
  const keys = Object.keys(emptyActivity) as (keyof GpuActivity)[];
  const merged = Object.fromEntries(keys.map((key) => [key, measured[key] ?? own[key]]));
  return { ...sample, activity: merged as unknown as GpuActivity };
}

// ---- One call at a time

type NotDone =
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The call under way is past its own deadline. */
  | { readonly kind: 'hung'; readonly call: string; readonly forMs: number }
  /** Another call is under way and still has time. */
  | { readonly kind: 'waiting' };

type Outcome<T> = { readonly kind: 'done'; readonly value: T } | NotDone;

interface Flight {
  readonly call: string;
  readonly startedAtMs: number;
  readonly deadlineMs: number;
  /** Never rejects. */
  readonly landed: Promise<Outcome<unknown>>;
}

class Lane {
  private readonly clock: Clock;
  private flight: Flight | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Joins a call of the same name that is under way in time; never starts anything beside one that is late. */
  async run<T>(call: string, start: () => Promise<T>, deadlineMs: number): Promise<Outcome<T>> {
    const untilMs = this.clock.monotonicMs() + deadlineMs;
    while (this.flight !== null && (this.flight.call !== call || this.isLate(this.flight))) {
      const flight = this.flight;
      // One that is late has had its time: a caller that comes now is not kept waiting again.
      if (this.isLate(flight)) return this.late(flight);
      const leftMs = untilMs - this.clock.monotonicMs();
      if ((await withDeadline(flight.landed, leftMs)) === 'late') return this.late(flight);
    }
    const flight = this.flight ?? this.takeOff(call, start, deadlineMs);
    const leftMs = Math.min(untilMs, flight.startedAtMs + flight.deadlineMs) - this.clock.monotonicMs();
    const outcome = await withDeadline(flight.landed, leftMs);
    return outcome === 'late' ? this.late(flight) : (outcome as Outcome<T>);
  }

  private takeOff(call: string, start: () => Promise<unknown>, deadlineMs: number): Flight {
    const landed = (async (): Promise<Outcome<unknown>> => {
      try {
        return { kind: 'done', value: await start() };
      } catch (error) {
        return { kind: 'failed', error };
      }
    })();
    const flight: Flight = { call, startedAtMs: this.clock.monotonicMs(), deadlineMs, landed };
    this.flight = flight;
    void landed.then(() => {
      if (this.flight === flight) this.flight = null;
    });
    return flight;
  }

  private isLate({ startedAtMs, deadlineMs }: Flight): boolean {
    return this.clock.monotonicMs() - startedAtMs >= deadlineMs;
  }

  private late(flight: Flight): NotDone {
    const forMs = this.clock.monotonicMs() - flight.startedAtMs;
    // Timers may fire a little early by this clock.
    const earlyMs = 2;
    if (forMs < flight.deadlineMs - earlyMs) return { kind: 'waiting' };
    return { kind: 'hung', call: flight.call, forMs };
  }
}
