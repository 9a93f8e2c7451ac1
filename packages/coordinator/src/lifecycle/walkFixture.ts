/** For random walks over a job: which events come, and what holds of phases after each. */
import type { PhaseVerdict } from '@muster/common/phases';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';
import type { JobEvent } from './event.ts';

export const somePhases = [
  { name: 'broad', steps: 10 },
  {
    name: 'curated',
    steps: 10,
    success: 'eval_loss < 3',
    extend: { steps: 5, max: 2, finally: 'continue' as const },
  },
  { name: 'domain', steps: 10, success: 'eval_loss < 3', unmet: 'continue' as const },
  { name: 'cooldown', steps: 10, success: 'eval_loss < 3' },
];

export function aVerdict(attempt: number, verdict: PhaseVerdict): Extract<JobEvent, { kind: 'phaseJudged' }> {
  return {
    kind: 'phaseJudged',
    attempt,
    verdict,
    values: { eval_loss: verdict === 'unknown' ? null : 3 },
    notFinite: [],
  };
}

/** @returns the rules that the event has broken */
export function brokenByPhases(before: Job, event: JobEvent, job: Job): readonly string[] {
  const broken: string[] = [];
  const check = (holds: boolean, rule: string) => {
    if (!holds) broken.push(rule);
  };
  const { phase, state, spec } = job;
  if (event.kind === 'phaseJudged') {
    const isAwaited = before.state.kind === 'queued' && before.phase?.awaiting?.attempt === event.attempt;
    check(isAwaited === (job !== before), 'a verdict counts once, and only where it is awaited');
    if (isAwaited) check(phase?.awaiting === null, 'and nothing is awaited any longer');
  }
  if (before.phase === null || phase === null) {
    check(before.phase === phase, 'phases neither come nor go');
    return broken;
  }
  const isSentBack = event.kind === 'requeue' && event.from.kind !== 'newest';
  const placeOf = ({ index, ended }: NonNullable<Job['phase']>) => ended.length * 2 + index;
  if (!isSentBack) {
    check(placeOf(phase) >= placeOf(before.phase), 'phases go forward');
    check(
      before.phase.ended.every((each, index) => phase.ended[index] === each),
      'what has ended stays',
    );
  }
  check(phase.ended.length - phase.index <= 1, 'no phase is skipped');
  check(phase.ended.length >= phase.index, 'and none ends twice');
  check(
    phase.awaiting === null || state.kind === 'queued' || isTerminal(state.kind),
    'a verdict is awaited in the queue',
  );
  if (state.kind === 'succeeded')
    check(phase.ended.length === spec.phases.length, 'it succeeds after its last phase');
  return broken;
}

export const likelyEvents: readonly JobEvent['kind'][] = [
  ...Array.from({ length: 3 }, () => 'allocate' as const),
  ...Array.from({ length: 8 }, () => 'prepared' as const),
  ...Array.from({ length: 8 }, () => 'checked' as const),
  ...Array.from({ length: 6 }, () => 'taskRunning' as const),
  ...Array.from({ length: 5 }, () => 'taskEnded' as const),
  'taskLost',
  'startFailed',
  'prepareTimeout',
  'rendezvousTimeout',
  'stop',
  'requeue',
  'preempt',
  ...Array.from({ length: 6 }, () => 'checkpoint' as const),
  'trainingComplete',
  'firstStep',
  'trainingSign',
  'hung',
  'extend',
  'timeLimit',
  ...Array.from({ length: 3 }, () => 'phaseJudged' as const),
];
