/** Rules of the coordinator's clock, each taken out. */
import type * as clockStateModule from '@muster/coordinator/clock/clockState';
import { type Mutant, replacing } from './mutant.ts';
import { faultsOf } from './plan.ts';

const clockState = replacing<typeof clockStateModule>('packages/coordinator/src/clock/clockState.ts');

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
} as const satisfies Readonly<Record<string, Mutant>>;
