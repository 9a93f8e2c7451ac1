/**
 * The wall clock that the coordinator decides by: what it records has the time of the world, whatever the system clocks show. It may
 * lag behind by what no one could confirm, which is the time in which no coordinator ran.
 */
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

/** Wall clock at the start of the world. */
const epochMs = 1_700_000_000_000;
/** A system clock that is less far away is followed, and clocks run at their own rates. */
const followedMs = 12_000;
/** A store may be slow, and an event has the time at which its turn began. */
const slowMs = 60_000;

export class ClockCheck {
  private readonly verdict: Verdict;
  /** Null before the first event. */
  private beganRight: boolean | null = null;
  private downMs = 0;
  private downSinceMs: number | null = 0;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'process' && fact.name.startsWith('coordinator ')) this.onProcess(fact.what, nowMs);
    if (fact.kind !== 'committed') return;
    for (const { kind, timeMs } of fact.events) {
      const aheadMs = timeMs - epochMs - nowMs;
      const isNear = aheadMs <= followedMs && aheadMs >= -(followedMs + slowMs + this.downMs);
      // A first start with a wrong clock has nothing to compare it with.
      this.beganRight ??= isNear;
      if (!this.beganRight) return;
      this.verdict.require(isNear, 'clock', () => `${kind} was recorded ${Math.round(aheadMs)} ms ahead`);
    }
  }

  private onProcess(what: string, nowMs: number): void {
    if (what === 'started') {
      this.downMs += nowMs - (this.downSinceMs ?? nowMs);
      this.downSinceMs = null;
    } else if (what === 'killed') this.downSinceMs = nowMs;
  }
}
