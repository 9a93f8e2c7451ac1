/** The clocks of one machine, which is wrong about the time in its own way. */
import type { Clock } from '@muster/common/clock';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';

/** How far the rate of any machine's clock is off at most; what leases are laid out for. */
export const clockRateError = 0.005;

/** /proc/uptime has hundredths of a second. */
const boottimeStepMs = 10;

export class MachineClock implements Clock {
  /** Of the monotonic clocks; the timers of the machine's processes follow it. */
  readonly rate: number;
  private bootedAtMs = 0;
  private readonly offsetMs: number;
  private readonly timeline: Timeline;
  private readonly wallOffsetMs: () => number;

  /**
   * @param wallOffsetMs how far wall clocks are off now; no decision may depend on them (G10 of docs/guarantees.md)
   * @param rate of the machine's clocks, if another process of it has them already
   */
  constructor(timeline: Timeline, random: Random, wallOffsetMs: () => number, rate: number | null = null) {
    this.timeline = timeline;
    this.wallOffsetMs = wallOffsetMs;
    const ownRate = rateOf(random);
    this.rate = rate ?? ownRate;
    this.offsetMs = random.between(0, 1_000_000_000);
  }

  readonly wallMs = (): number => 1_700_000_000_000 + this.timeline.nowMs + this.wallOffsetMs();

  readonly monotonicMs = (): number => this.offsetMs + this.timeline.nowMs * this.rate;

  /** CLOCK_BOOTTIME: starts from 0 with every boot. */
  readonly boottimeMs = (): number => {
    const ms = (this.timeline.nowMs - this.bootedAtMs) * this.rate;
    return Math.floor(ms / boottimeStepMs) * boottimeStepMs;
  };

  /** Of the world, which no process knows. */
  trueMs(): number {
    return this.timeline.nowMs;
  }

  boot(): void {
    this.bootedAtMs = this.timeline.nowMs;
  }
}

/** Rate of one machine's monotonic clocks. The extremes are what the gap between two attempts has to stand. */
export function rateOf(random: Random): number {
  return 1 + random.pick([-1, 0, 1, random.next() * 2 - 1]) * clockRateError;
}
