/**
 * The time that the coordinator believes. Pure: the state after a reading of the clocks is a function of the state before.
 *
 * Within one boot the trusted time continues by CLOCK_BOOTTIME, which no user and no service can set. The system clock is
 * followed slowly as long as it stays close, because NTP corrects both. A system clock that is further away has been stepped.
 * Only over a reboot, a move to another machine, or the time before the first confirmation can such a step be right.
 */

/** Largest difference that is followed; a system clock that is further away counts as stepped. */
export const followedMs = 10_000;
/** Rate at which a small difference is followed. Leases allow for the same error of a clock's rate. */
const followRate = 0.005;
/** Two witnesses of a gap agree within this many milliseconds and this share of the gap. */
const witnessToleranceMs = 5_000;
const witnessRateError = 0.001;

/**
 * What the trusted time rests on. `first`: nothing has confirmed it since the first start. `crossed`: the coordinator was
 * started after a reboot or on another machine, and the time that passed meanwhile is unknown. `confirmed`: only BOOTTIME counts.
 */
import type { ClockBasis } from '@muster/common/clockView';

/** How a step ended: the system clock came back, or the kernel, the agents or an admin confirmed it. */
export type ClockSettledBy = 'agreement' | 'kernel' | 'agents' | 'admin';

export interface ClockStep {
  /** When the step was noticed, in trusted time. */
  readonly sinceWallMs: number;
  /** The system clock less the trusted time when the step was noticed; negative if the system clock is behind. */
  readonly firstByMs: number;
}

export interface ClockState {
  /** Id of the boot in which the clocks were read last. Null if it could not be read. */
  readonly bootId: string | null;
  /** CLOCK_BOOTTIME of the last reading, milliseconds. */
  readonly boottimeMs: number;
  /** The believed wall-clock time of the last reading, milliseconds since 1970. */
  readonly trustedWallMs: number;
  /** Monotonic time counted in all runs. Time between two boots is not counted, and no step changes it. */
  readonly countedMs: number;
  readonly basis: ClockBasis;
  /** Null while the system clock is believed. */
  readonly step: ClockStep | null;
  /** Trusted time at the gap between two boots that nothing has measured yet. Absent if there is none. */
  readonly gapAtWallMs?: number;
}

export interface ClockReading {
  /** Null if it cannot be read; no two readings then count as one boot. */
  readonly bootId: string | null;
  /** CLOCK_BOOTTIME, milliseconds. */
  readonly boottimeMs: number;
  /** The system's wall clock, milliseconds since 1970. */
  readonly systemWallMs: number;
}

/** What can confirm a system clock that differs. */
export interface ClockWitnesses {
  /** True if the kernel says that its clock is synchronised. Null if it was not asked, or cannot be asked. */
  readonly isSynchronised: boolean | null;
  /**
   * The present time by the agents that stayed up: the median of their last contact plus their BOOTTIME since then. Null if
   * there is none.
   */
  readonly agentsWallMs: number | null;
}

export interface ClockOutcome {
  readonly state: ClockState;
  /** How the step that the state before had has ended, or a gap was confirmed without one. Null if nothing was settled. */
  readonly settledBy: ClockSettledBy | null;
  /** Milliseconds by which the trusted time was set; 0 if it only continued. */
  readonly setByMs: number;
}

/** @param reading at the very first start, which has nothing to compare it with */
export function firstClock({ bootId, boottimeMs, systemWallMs }: ClockReading): ClockState {
  return { bootId, boottimeMs, trustedWallMs: systemWallMs, countedMs: 0, basis: 'first', step: null };
}

/**
 * Continues from what an earlier run has stored.
 * @param before the state that was stored last; time in the same boot has passed since
 */
export function resumedClock(before: ClockState, reading: ClockReading): ClockState {
  const isSameBoot =
    reading.bootId !== null && before.bootId === reading.bootId && reading.boottimeMs >= before.boottimeMs;
  if (isSameBoot) return wentOn(before, reading);
  const { bootId, boottimeMs } = reading;
  // What was never confirmed stays so.
  const basis = before.basis === 'first' ? 'first' : 'crossed';
  const gapAtWallMs = (before.basis === 'crossed' ? before.gapAtWallMs : null) ?? before.trustedWallMs;
  return { ...before, bootId, boottimeMs, basis, gapAtWallMs };
}

/** True if the witnesses are needed to judge this reading; they cost something to ask. */
export function needsWitnesses(state: ClockState, reading: ClockReading): boolean {
  if (state.basis === 'first') return true;
  return Math.abs(reading.systemWallMs - wentOn(state, reading).trustedWallMs) > followedMs;
}

/** The state after this reading, of the same boot as the one before. */
export function readClock(
  before: ClockState,
  reading: ClockReading,
  witnesses: ClockWitnesses,
): ClockOutcome {
  const state = wentOn(before, reading);
  const byMs = reading.systemWallMs - state.trustedWallMs;
  if (Math.abs(byMs) <= followedMs) {
    const isConfirmed = state.basis !== 'first' || witnesses.isSynchronised === true;
    return {
      state: {
        ...state,
        trustedWallMs: state.trustedWallMs + followedBy(byMs, state.countedMs - before.countedMs),
        basis: isConfirmed ? 'confirmed' : 'first',
        step: null,
      },
      settledBy: state.step === null ? null : 'agreement',
      setByMs: 0,
    };
  }
  const settledBy = confirmedBy(state, reading.systemWallMs, byMs, witnesses);
  if (settledBy !== null) {
    const believed = {
      ...state,
      trustedWallMs: reading.systemWallMs,
      basis: 'confirmed',
      step: null,
    } as const;
    return { state: believed, settledBy, setByMs: byMs };
  }
  const step = state.step ?? { sinceWallMs: state.trustedWallMs, firstByMs: byMs };
  return { state: { ...state, step }, settledBy: null, setByMs: 0 };
}

/**
 * From which trusted time on moments move when the clock is set by so much. Time passed in a gap between two boots, so what lies before
 * it stays. Null if all moments move.
 */
export function movesFrom({ basis, gapAtWallMs }: ClockState, setByMs: number): number | null {
  return basis === 'crossed' && setByMs > 0 ? (gapAtWallMs ?? null) : null;
}

/** The state after an admin has confirmed the system clock. */
export function acceptedClock(before: ClockState, reading: ClockReading): ClockOutcome {
  const state = wentOn(before, reading);
  return {
    state: { ...state, trustedWallMs: reading.systemWallMs, basis: 'confirmed', step: null },
    settledBy: 'admin',
    setByMs: reading.systemWallMs - state.trustedWallMs,
  };
}

function wentOn(before: ClockState, { boottimeMs }: ClockReading): ClockState {
  return later(before, Math.max(0, boottimeMs - before.boottimeMs));
}

/** The state later in the same boot. @param forMs milliseconds since */
export function later(before: ClockState, forMs: number): ClockState {
  return {
    ...before,
    boottimeMs: before.boottimeMs + forMs,
    trustedWallMs: before.trustedWallMs + forMs,
    countedMs: before.countedMs + forMs,
  };
}

function followedBy(byMs: number, forMs: number): number {
  const mostMs = forMs * followRate;
  return Math.max(-mostMs, Math.min(mostMs, byMs));
}

function confirmedBy(
  { basis, trustedWallMs }: ClockState,
  systemWallMs: number,
  byMs: number,
  { isSynchronised, agentsWallMs }: ClockWitnesses,
): ClockSettledBy | null {
  // A clock that went back over a reboot is wrong, whatever the kernel says: time was seen to be later.
  const mayHavePassed = basis === 'first' || (basis === 'crossed' && byMs > 0);
  if (mayHavePassed && isSynchronised === true) return 'kernel';
  if (byMs < 0 || agentsWallMs === null) return null;
  const gapMs = Math.max(0, agentsWallMs - trustedWallMs);
  const toleranceMs = witnessToleranceMs + gapMs * witnessRateError;
  return Math.abs(systemWallMs - agentsWallMs) <= toleranceMs ? 'agents' : null;
}

/** The middle of these numbers; of an even count, the lower middle. Null if there are none. */
export function medianOf(numbers: readonly number[]): number | null {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
