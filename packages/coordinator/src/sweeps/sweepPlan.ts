/** What a sweep does next, from what is known of it now. Pure. */
import type { TrialState } from '@muster/common/sweeps';
import type { StoredSweep, StoredTrial } from '../store/sweeps.ts';

/** Trials at the same time where the sweep does not say how many, whatever room there is. */
const atOnceMax = 256;

export interface SweepLook {
  readonly sweep: Pick<StoredSweep, 'state' | 'reason' | 'trials'>;
  /** In the order of their numbers. */
  readonly trials: readonly Pick<StoredTrial, 'state' | 'endedAtMs' | 'cause'>[];
  /** null: as long as no trial waits for room. */
  readonly parallel: number | null;
  readonly maxFailures: number;
  /** Trials whose jobs wait in the queue. */
  readonly queued: number;
}

export type SweepStep =
  | { readonly kind: 'start'; readonly number: number }
  | { readonly kind: 'giveUp'; readonly reason: string }
  | { readonly kind: 'end'; readonly state: 'done' | 'stopped' | 'failed'; readonly reason: string | null }
  /** Nothing, until a trial starts or ends. */
  | { readonly kind: 'wait' };

const wait: SweepStep = { kind: 'wait' };

export function nextSweepStep({ sweep, trials, parallel, maxFailures, queued }: SweepLook): SweepStep {
  const { state, reason } = sweep;
  const running = trials.filter((trial) => trial.state === 'running').length;
  if (state === 'stopping') return running > 0 ? wait : { kind: 'end', state: 'stopped', reason };
  if (state !== 'running') return wait;
  // It has been given up, and only waits for what runs.
  if (reason !== null) return running > 0 ? wait : { kind: 'end', state: 'failed', reason };
  const failures = lastFailures(trials);
  if (failures.length >= maxFailures) {
    const causes = [...new Set(failures)].join(', ');
    return { kind: 'giveUp', reason: `the last ${failures.length} trials have failed: ${causes}` };
  }
  if (trials.length >= sweep.trials) return running > 0 ? wait : { kind: 'end', state: 'done', reason: null };
  const isFull = parallel === null ? queued > 0 || running >= atOnceMax : running >= parallel;
  return isFull ? wait : { kind: 'start', number: trials.length };
}

/** What tells nothing of whether the program works. */
const neutral: readonly TrialState[] = ['running', 'stopped'];

/** Causes of the trials that have failed since one ended in another way, by the order of their ends. */
function lastFailures(trials: SweepLook['trials']): readonly string[] {
  const ended = trials
    .filter(({ state }) => !neutral.includes(state))
    .sort((a, b) => (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0));
  const since = ended.findLastIndex(({ state }) => state !== 'failed');
  return ended.slice(since + 1).map(({ cause }) => cause ?? 'unknown');
}
