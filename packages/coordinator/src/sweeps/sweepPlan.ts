/** What a sweep does next, from what is known of it now. Pure. */
import type { CauseKind } from '@muster/common/spec/causes';
import type { TrialState } from '@muster/common/sweeps';
import { needsMoreSeeds } from '@muster/experiments/seeds';
import type { Promotion } from '@muster/experiments/stopping/rules';
import { openJobsOf } from '../state/trialJobs.ts';
import type { StoredSweep, StoredTrial } from '../store/sweeps.ts';

/** Trials at the same time where the sweep does not say how many, whatever room there is. */
const atOnceMax = 256;

/** What ends trials because of their parameters. */
export const infeasibleCauses: ReadonlySet<CauseKind> = new Set([
  'cuda_oom',
  'host_oom',
  'shm_exhausted',
  'nan_loss',
  'loss_divergence',
  'loss_scale_exhausted',
]);

export interface SweepLook {
  readonly sweep: Pick<StoredSweep, 'state' | 'reason' | 'trials' | 'isSpent' | 'failuresFrom'>;
  /** In the order of their numbers. */
  readonly trials: readonly Pick<StoredTrial, 'state' | 'jobId' | 'endedAtMs' | 'cause' | 'seedRuns'>[];
  /** How often each trial runs. */
  readonly seeds: number;
  /** Jobs at the same time. null: as long as none waits for room. */
  readonly parallel: number | null;
  readonly maxFailures: number;
  /** Jobs that wait in the queue. */
  readonly queued: number;
  /** Why its budget is used up. null: it is not. */
  readonly spent: string | null;
  /** Paused trials that may continue, the most promising first. */
  readonly promotions: readonly Promotion[];
}

export type SweepStep =
  | { readonly kind: 'start'; readonly number: number }
  /** A trial that is there, with another seed. */
  | { readonly kind: 'startSeed'; readonly number: number; readonly seed: number }
  | { readonly kind: 'resume'; readonly promotion: Promotion }
  /** Paused trials that nothing will resume. */
  | { readonly kind: 'prune'; readonly numbers: readonly number[] }
  /** Trials none of whose jobs runs, and which get no further seed. */
  | { readonly kind: 'close'; readonly numbers: readonly number[] }
  | { readonly kind: 'giveUp'; readonly reason: string; readonly isSpent: boolean }
  | { readonly kind: 'end'; readonly state: 'done' | 'stopped' | 'failed'; readonly reason: string | null }
  /** Nothing, until a trial starts or ends. */
  | { readonly kind: 'wait' };

const wait: SweepStep = { kind: 'wait' };

export function nextSweepStep(look: SweepLook): SweepStep {
  const { sweep, trials, parallel, maxFailures, queued, promotions, spent } = look;
  const { state, reason } = sweep;
  const running = trials.reduce((sum, trial) => sum + openJobsOf(trial).length, 0);
  if (state === 'stopping') return endOf(trials, { kind: 'end', state: 'stopped', reason });
  if (state !== 'running') return wait;
  // It has been given up, and only waits for what runs.
  if (reason !== null)
    return endOf(trials, { kind: 'end', state: sweep.isSpent === true ? 'done' : 'failed', reason });
  const failures = lastFailures(trials.slice(sweep.failuresFrom ?? 0));
  if (failures.length >= maxFailures) {
    const causes = [...new Set(failures)].join(', ');
    const failed = `the last ${failures.length} trials have failed: ${causes}`;
    return { kind: 'giveUp', reason: failed, isSpent: false };
  }
  if (spent !== null && isOpen(look)) return { kind: 'giveUp', reason: spent, isSpent: true };
  const isFull = parallel === null ? queued > 0 || running >= atOnceMax : running >= parallel;
  const promotion = promotions.find(({ number }) => trials[number]?.state === 'paused');
  if (promotion !== undefined) return isFull ? wait : { kind: 'resume', promotion };
  const unfinished = trials.findIndex((trial) => lacksSeeds(trial, look));
  if (unfinished !== -1) {
    const seed = trials[unfinished]?.seedRuns?.length ?? 0;
    return isFull ? wait : { kind: 'startSeed', number: unfinished, seed };
  }
  if (trials.length >= sweep.trials) return endOf(trials, { kind: 'end', state: 'done', reason: null });
  return isFull ? wait : { kind: 'start', number: trials.length };
}

/** Whether more trials would be started or resumed by now or later. */
function isOpen(look: SweepLook): boolean {
  const { sweep, trials } = look;
  return (
    trials.length < sweep.trials ||
    trials.some((trial) => trial.state === 'paused' || lacksSeeds(trial, look))
  );
}

function lacksSeeds(
  { state, seedRuns }: SweepLook['trials'][number],
  { seeds }: Pick<SweepLook, 'seeds'>,
): boolean {
  return state === 'running' && seedRuns !== undefined && needsMoreSeeds(seedRuns, seeds);
}

/** Of one commit. */
const closedMax = 500;

/** Once nothing runs, and no trial is paused. */
function endOf(trials: SweepLook['trials'], end: SweepStep): SweepStep {
  if (trials.some((trial) => openJobsOf(trial).length > 0)) return wait;
  const open = trials.flatMap(({ state }, number) => (state === 'running' ? [number] : []));
  if (open.length > 0) return { kind: 'close', numbers: open.slice(0, closedMax) };
  const paused = trials.flatMap(({ state }, number) => (state === 'paused' ? [number] : []));
  return paused.length === 0 ? end : { kind: 'prune', numbers: paused.slice(0, closedMax) };
}

/** What tells nothing of whether the program works. */
const neutral: readonly TrialState[] = ['running', 'paused', 'stopped'];

/** Causes of the trials that have failed since one ended in another way, by the order of their ends. */
function lastFailures(trials: SweepLook['trials']): readonly string[] {
  const ended = trials
    .filter(({ state }) => !neutral.includes(state))
    .sort((a, b) => (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0));
  const since = ended.findLastIndex(({ state }) => state !== 'failed');
  return ended.slice(since + 1).map(({ cause }) => cause ?? 'unknown');
}
