/** Rules of checkpoints, preemptions, drains and retries, each taken out. */
import type * as setAsideModule from '@muster/agent/checkpoints/setAside';
import type * as checkpointsModule from '@muster/coordinator/lifecycle/checkpoints';
import type * as ledgerModule from '@muster/coordinator/lifecycle/ledger';
import type * as phasesModule from '@muster/coordinator/lifecycle/phases';
import type * as recoveryModule from '@muster/coordinator/lifecycle/recovery';
import type * as resumeModule from '@muster/coordinator/lifecycle/resume';
import type * as stoppingModule from '@muster/coordinator/lifecycle/stopping';
import type * as nodeViewsModule from '@muster/coordinator/planning/nodeViews';
import type * as planningModule from '@muster/coordinator/planning/planningView';
import type * as drainsModule from '@muster/coordinator/reconcilers/drains';
import type * as pinModule from '@muster/coordinator/scheduler/pin';
import type * as preemptibleModule from '@muster/coordinator/scheduler/preemptible';
import type * as reasonsModule from '@muster/coordinator/scheduler/reasons';
import type * as phaseSpecModule from '@muster/coordinator/spec/phaseSpec';
import type * as memoryStoreModule from '@muster/coordinator/store/memory/memoryStore';
import type * as simulatedModule from './checkpoints.ts';
import { type Mutant, replacing } from './mutant.ts';
import { faultsOf } from './plan.ts';

const coordinator = 'packages/coordinator/src';
const checkpoints = replacing<typeof checkpointsModule>(`${coordinator}/lifecycle/checkpoints.ts`);
const ledger = replacing<typeof ledgerModule>(`${coordinator}/lifecycle/ledger.ts`);
const phases = replacing<typeof phasesModule>(`${coordinator}/lifecycle/phases.ts`);
const reasons = replacing<typeof reasonsModule>(`${coordinator}/scheduler/reasons.ts`);
const phaseSpec = replacing<typeof phaseSpecModule>(`${coordinator}/spec/phaseSpec.ts`);
const recovery = replacing<typeof recoveryModule>(`${coordinator}/lifecycle/recovery.ts`);
const resume = replacing<typeof resumeModule>(`${coordinator}/lifecycle/resume.ts`);
const stopping = replacing<typeof stoppingModule>(`${coordinator}/lifecycle/stopping.ts`);
const drains = replacing<typeof drainsModule>(`${coordinator}/reconcilers/drains.ts`);
const nodeViews = replacing<typeof nodeViewsModule>(`${coordinator}/planning/nodeViews.ts`);
const planning = replacing<typeof planningModule>(`${coordinator}/planning/planningView.ts`);
const pin = replacing<typeof pinModule>(`${coordinator}/scheduler/pin.ts`);
const preemptible = replacing<typeof preemptibleModule>(`${coordinator}/scheduler/preemptible.ts`);
const memoryStore = replacing<typeof memoryStoreModule>(`${coordinator}/store/memory/memoryStore.ts`);
const setAside = replacing<typeof setAsideModule>('packages/agent/src/checkpoints/setAside.ts');
const simulated = replacing<typeof simulatedModule>('test/sim/checkpoints.ts');

export const trainingMutants = {
  'only-whole-checkpoints': {
    rule: 'An attempt begins from a checkpoint that was found whole.',
    breaks: ['resume'],
    seed: 1,
    replacements: [
      resume(
        'isGood',
        () =>
          ({ verdict, suspect }) =>
            verdict !== null && !suspect,
      ),
    ],
  },
  'suspects-are-not-resumed-from': {
    rule: 'No attempt resumes from a checkpoint from which attempts have failed in the same way.',
    breaks: ['resume'],
    seed: 1,
    circumstances: { faults: [], meanUserPauseMs: 400 },
    replacements: [
      resume(
        'isGood',
        () =>
          ({ verdict }) =>
            verdict === 'verified',
      ),
    ],
  },
  'readable-where-it-runs': {
    rule: 'An attempt begins from what one of its nodes can read.',
    breaks: ['resume'],
    seed: 37,
    circumstances: { faults: faultsOf(5_000, 'reboot', 'sickGpu') },
    replacements: [
      pin(
        'resumeOn',
        (resumeOn) => (resumes, tasks) =>
          resumeOn(
            resumes.map((each) => ({ ...each, readers: null })),
            tasks,
          ),
      ),
    ],
  },
  'jobs-return-to-their-checkpoint': {
    rule: 'A job whose newest checkpoint is on one machine resumes there.',
    breaks: ['resume'],
    seed: 2,
    replacements: [planning('pinOf', () => () => null)],
  },
  'the-newest-comes-first': {
    rule: 'Of several checkpoints the newest is begun from.',
    breaks: ['resume'],
    seed: 2,
    replacements: [resume('resumeCandidates', (candidates) => (job) => candidates(job).toReversed())],
  },
  'the-last-checkpoint-before-the-end': {
    rule: 'An end is reported when what was saved last is known.',
    breaks: ['resume'],
    seed: 6,
    replacements: [simulated('SimulatedCheckpoints.lastLook', () => async () => {})],
  },
  'newer-steps-are-set-aside': {
    rule: 'No attempt writes over what an earlier one has saved after the checkpoint that it resumes from.',
    breaks: ['resume'],
    seed: 10,
    replacements: [setAside('overtakenBy', () => () => [])],
  },
  'only-lower-priorities-are-preempted': {
    rule: 'Only jobs of lower priority are preempted.',
    breaks: ['preemption'],
    seed: 20,
    replacements: [preemptible('outranks', () => (priority, holder) => priority !== holder.priority)],
  },
  'only-preemptible-jobs-are-preempted': {
    rule: 'A job that is not declared preemptible is not preempted.',
    breaks: ['preemption'],
    seed: 1,
    replacements: [
      planning(
        'newHolder',
        (newHolder) =>
          (job, ...rest) =>
            newHolder({ ...job, spec: { ...job.spec, preemptible: true } }, ...rest),
      ),
    ],
  },
  'max-preemptions-is-kept': {
    rule: 'A job is preempted no more than max_preemptions times.',
    breaks: ['preemption'],
    seed: 1,
    replacements: [recovery('mayBePreempted', () => () => true)],
  },
  'preemptions-are-counted': {
    rule: 'Each preemption of a job is counted.',
    breaks: ['preemption'],
    seed: 1,
    replacements: [
      stopping('end', (end) => (job, ...rest) => {
        const next = end(job, ...rest);
        return { ...next, job: { ...next.job, preemptions: job.preemptions } };
      }),
    ],
  },
  'a-preemption-is-no-failure': {
    rule: 'A preempted job is queued again, and no failure is charged to it.',
    breaks: ['preemption', 'retry'],
    seed: 1,
    replacements: [
      stopping('beginStopping', (beginStopping) => (job, attempt, outcome, nowMs) => {
        const isPreempted = outcome.next === 'queued' && outcome.charge === 'preemption';
        return beginStopping(job, attempt, isPreempted ? { ...outcome, charge: 'failure' } : outcome, nowMs);
      }),
    ],
  },
  'a-preempted-job-keeps-its-place': {
    rule: 'A job that was put back keeps its place in the queue.',
    breaks: ['preemption'],
    seed: 1,
    replacements: [
      stopping('end', (end) => (job, ...rest) => {
        const next = end(job, ...rest);
        return { ...next, job: { ...next.job, submitSeq: next.job.submitSeq + 1_000 } };
      }),
      memoryStore('storedJob', (storedJob) => (known, job) => ({
        ...storedJob(known, job),
        submitSeq: job.submitSeq,
      })),
    ],
  },
  'a-grace-is-a-grace': {
    rule: 'Only a checkpoint that was begun after the signal ends a grace early.',
    breaks: ['grace'],
    seed: 9,
    replacements: [
      checkpoints(
        'endsGrace',
        (endsGrace) => (job, _afterStop, checkpoint) => endsGrace(job, true, checkpoint),
      ),
    ],
  },
  'nodes-to-be-drained-get-no-work': {
    rule: 'A node that a person has drained is given nothing.',
    breaks: ['drains'],
    seed: 2,
    replacements: [
      nodeViews('drainedView', (drainedView) => (node) => drainedView({ ...node, drain: null })),
    ],
  },
  'drains-meet-their-deadline': {
    rule: 'Work leaves a node that is drained early enough before its deadline.',
    breaks: ['drains'],
    seed: 15,
    circumstances: { drainChance: 0.8 },
    replacements: [
      drains('isDue', (isDue) => (deadlineMs, lead, nowMs) => isDue(deadlineMs + 600_000, lead, nowMs)),
    ],
  },
  'only-what-it-asks-for': {
    rule: 'A job is tried again after the causes that it names.',
    breaks: ['retry'],
    seed: 1,
    replacements: [recovery('isRetriedAfter', () => () => true)],
  },
  'the-budget-is-kept': {
    rule: 'A job is tried no more often than max_attempts without progress.',
    breaks: ['retry'],
    seed: 1,
    replacements: [
      recovery(
        'isLastAttempt',
        () =>
          ({ failures, spec }) =>
            failures + 1 >= spec.retry.maxAttempts + 3,
      ),
    ],
  },
  'the-breaker-opens': {
    rule: 'After so many failures in a row there is a pause before each trial.',
    breaks: ['retry'],
    seed: 1,
    replacements: [recovery('opensBreaker', () => () => false)],
  },
  'progress-refills': {
    rule: 'What went wrong before a newer checkpoint is over.',
    breaks: ['retry'],
    seed: 5,
    circumstances: { faults: [], meanUserPauseMs: 400 },
    replacements: [
      checkpoints('afterProgress', (afterProgress) => (job) => {
        const { failures, failuresInRow } = job;
        return { ...afterProgress(job), failures, failuresInRow };
      }),
    ],
  },
  'every-second-is-booked-once': {
    rule: 'What an attempt held is booked, and once.',
    breaks: ['ledger'],
    seed: 1,
    replacements: [
      ledger('bookAttempt', (bookAttempt) => (job, ended) => bookAttempt(bookAttempt(job, ended), ended)),
    ],
  },
  'no-attempt-before-the-verdict': {
    rule: 'A job whose phase has ended gets its next attempt once the phase was judged.',
    breaks: ['assertion', 'phase'],
    seed: 4,
    replacements: [
      reasons(
        'reasonBeforeResources',
        (reasonBeforeResources) => (job, nowMs) => reasonBeforeResources({ ...job, phase: null }, nowMs),
      ),
    ],
  },
  'an-attempt-is-of-its-phase': {
    rule: 'An attempt runs with the parameters of the phase in which it was allocated.',
    breaks: ['phase'],
    seed: 4,
    replacements: [
      phaseSpec('attemptSpec', (attemptSpec) => (job) => {
        const { phase } = job;
        return attemptSpec(
          phase === null ? job : { ...job, phase: { ...phase, index: Math.max(0, phase.index - 1) } },
        );
      }),
    ],
  },
  'a-phase-is-not-skipped': {
    rule: 'After a phase that was met comes the next, and no other.',
    breaks: ['phase'],
    seed: 4,
    replacements: [
      phases('afterVerdict', (afterVerdict) => (job, event, nowMs) => {
        const step = afterVerdict(job, event, nowMs);
        const phase = step?.job.phase ?? null;
        if (step === null || phase === null || step.next !== 'waits') return step;
        const index = Math.min(phase.index + 1, job.spec.phases.length - 1);
        return { ...step, job: { ...step.job, phase: { ...phase, index } } };
      }),
    ],
  },
} satisfies Record<string, Mutant>;
