/** Rules of the coordinator's clock, each taken out. */
import type * as clockStateModule from '@muster/coordinator/clock/clockState';
import type * as measuredModule from '@muster/coordinator/lifecycle/measured';
import { type Mutant, replacing } from './mutant.ts';
import { faultsOf } from './plan.ts';

const clockState = replacing<typeof clockStateModule>('packages/coordinator/src/clock/clockState.ts');

const measured = replacing<typeof measuredModule>('packages/coordinator/src/lifecycle/measured.ts');

export const clockMutants = {
  'steps-are-not-believed': {
    rule: 'Within one boot the trusted time continues by BOOTTIME, whatever the system clock shows.',
    breaks: ['clock'],
    seed: 1,
    circumstances: { faults: faultsOf(5_000, 'wallClockJump') },
    replacements: [
      clockState('readClock', (readClock) => (before, reading, witnesses) => {
        const outcome = readClock(before, reading, witnesses);
        return { ...outcome, state: { ...outcome.state, trustedWallMs: reading.systemWallMs, step: null } };
      }),
    ],
  },
  'a-gap-needs-a-witness': {
    rule: 'Over a reboot or a move the system clock is believed only where the kernel or the agents confirm it.',
    breaks: ['clock'],
    seed: 1,
    circumstances: { faults: faultsOf(5_000, 'wallClockJump', 'killCoordinator') },
    replacements: [
      clockState('resumedClock', (resumedClock) => (before, reading) => ({
        ...resumedClock(before, reading),
        trustedWallMs: reading.systemWallMs,
      })),
    ],
  },
  // Each of the two makes good what the other misses in most histories.
  'durations-are-monotonic': {
    rule: 'Moments lie on a clock that no step moves, and nodes measure how long their tasks run.',
    breaks: ['ledger'],
    seed: 1,
    circumstances: { faults: faultsOf(8_000, 'wallClockJump') },
    replacements: [
      clockState('readClock', (readClock) => (before, reading, witnesses) => {
        const outcome = readClock(before, reading, witnesses);
        const state = { ...outcome.state, trustedWallMs: reading.systemWallMs, step: null };
        return { state, settledBy: null, setByMs: 0 };
      }),
      measured('asMeasured', () => (attempt) => attempt),
    ],
  },
} as const satisfies Readonly<Record<string, Mutant>>;
