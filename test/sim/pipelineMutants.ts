/** Rules of pipelines and their triggers, each taken out. */
import type * as pipelineCommandsModule from '@muster/coordinator/commands/pipelines';
import type * as triggerCommandsModule from '@muster/coordinator/commands/triggers';
import type * as pipelineStateModule from '@muster/coordinator/state/pipelines';
import type * as dataWatchModule from '@muster/coordinator/triggers/dataWatch';
import type * as graphModule from '@muster/pipelines/file/graph';
import type * as planModule from '@muster/pipelines/plan';
import { type Mutant, replacing } from './mutant.ts';
import { faultsOf } from './plan.ts';

const coordinator = 'packages/coordinator/src';
const pipelineCommands = replacing<typeof pipelineCommandsModule>(`${coordinator}/commands/pipelines.ts`);
const triggerCommands = replacing<typeof triggerCommandsModule>(`${coordinator}/commands/triggers.ts`);
const dataWatch = replacing<typeof dataWatchModule>(`${coordinator}/triggers/dataWatch.ts`);
const pipelineState = replacing<typeof pipelineStateModule>(`${coordinator}/state/pipelines.ts`);
const graph = replacing<typeof graphModule>('packages/pipelines/src/file/graph.ts');
const plan = replacing<typeof planModule>('packages/pipelines/src/plan.ts');
const often = { hasPipelines: true, faults: [] };

export const pipelineMutants = {
  'steps-are-stored-with-their-jobs': {
    rule: 'A step that starts and its job are one commit.',
    breaks: ['pipeline'],
    seed: 1,
    circumstances: often,
    replacements: [
      pipelineState(
        'DraftedPipelines.putStep',
        (putStep) =>
          function (row) {
            if (row.state !== 'running') putStep.call(this, row);
          },
      ),
    ],
  },
  'sweeps-of-steps-are-stored-with-them': {
    rule: 'A step that starts and its sweep are one commit.',
    breaks: ['pipeline'],
    seed: 1,
    circumstances: often,
    replacements: [
      pipelineState(
        'DraftedPipelines.putStep',
        (putStep) =>
          function (row) {
            if (row.state !== 'running' || row.sweepId === null) putStep.call(this, row);
          },
      ),
    ],
  },
  'steps-wait-for-what-they-need': {
    rule: 'A step starts once the steps that it waits for have ended.',
    breaks: ['pipeline'],
    seed: 1,
    circumstances: often,
    replacements: [graph('needsOf', () => () => [])],
  },
  'a-stopped-run-starts-no-step': {
    rule: 'Of a run that was stopped, only the steps under finally start.',
    breaks: ['pipeline'],
    seed: 12,
    circumstances: { hasPipelines: true, faults: faultsOf(3_000, 'slowStore') },
    replacements: [
      pipelineCommands(
        'startJobStep',
        (start) => (draft, step, random, nowMs) =>
          start(draft, { ...step, runsWhenStopped: true }, random, nowMs),
      ),
    ],
  },
  'the-last-steps-run': {
    rule: 'A run ends once its steps under finally have.',
    breaks: ['pipeline'],
    seed: 1,
    circumstances: often,
    replacements: [
      plan(
        'nextPipelineActions',
        (next) => (look) => next({ ...look, steps: look.steps.filter(({ group }) => group !== 'finally') }),
      ),
    ],
  },
  'a-fire-is-stored-with-its-run': {
    rule: 'A run, and that its trigger has fired, are one commit.',
    breaks: ['trigger'],
    seed: 4,
    circumstances: often,
    replacements: [
      triggerCommands(
        'fireTrigger',
        (fireTrigger) => (draft, fire, random, nowMs) =>
          fireTrigger(draft, { ...fire, moved: {} }, random, nowMs),
      ),
    ],
  },
  'events-before-a-kill-fire': {
    rule: 'A trigger looks at the events that came before a kill.',
    breaks: ['trigger'],
    seed: 26,
    circumstances: { hasPipelines: true, faults: faultsOf(3_000, 'killCoordinator') },
    replacements: [
      pipelineState(
        'pipelinesOf',
        (pipelinesOf) => (stored) =>
          pipelinesOf({
            ...stored,
            triggers: stored.triggers.map((each) => ({ ...each, eventSeq: (each.eventSeq ?? 0) + 100 })),
          }),
      ),
    ],
  },
  'a-paused-trigger-starts-nothing': {
    rule: 'A trigger that is paused starts nothing until it is resumed.',
    breaks: ['trigger'],
    seed: 8,
    circumstances: often,
    replacements: [
      pipelineState(
        'DraftedPipelines.putTrigger',
        (putTrigger) =>
          function (trigger) {
            putTrigger.call(this, { ...trigger, isPaused: false });
          },
      ),
    ],
  },
  'what-happens-in-a-pause-is-over': {
    rule: 'A trigger looks at no event that came while it was paused.',
    breaks: ['trigger'],
    seed: 36,
    circumstances: { ...often, faultPhaseMs: 60_000, meanUserPauseMs: 400 },
    replacements: [
      triggerCommands('pauseTrigger', (pauseTrigger) => (draft, name, wish, nowMs) => {
        const before = draft.pipelines.trigger(name);
        pauseTrigger(draft, name, wish, nowMs);
        const after = draft.pipelines.trigger(name);
        if (before !== undefined && after !== undefined)
          draft.pipelines.putTrigger({ ...after, eventSeq: before.eventSeq });
      }),
    ],
  },
  'data-has-settled': {
    rule: 'Data fires a trigger once it has stayed as it is for a while.',
    breaks: ['trigger'],
    seed: 4,
    circumstances: often,
    replacements: [dataWatch('hasSettled', () => () => true)],
  },
  'a-block-ends': {
    rule: 'A trigger whose directory can be listed again is no longer blocked.',
    breaks: ['trigger'],
    seed: 10,
    circumstances: often,
    replacements: [
      triggerCommands('noteBlock', (noteBlock) => (draft, trigger, found, nowMs) => {
        if (found !== null) noteBlock(draft, trigger, found, nowMs);
      }),
    ],
  },
  'deliveries-are-stored-with-their-fires': {
    rule: 'A delivery, and that it has fired its trigger, are one commit.',
    breaks: ['trigger'],
    seed: 7,
    circumstances: often,
    replacements: [
      triggerCommands('fireOnRequest', (fireOnRequest) => (draft, { request, ...fire }, random, nowMs) => {
        const other = { ...request, requestId: `${request.requestId.slice(0, 90)}/${nowMs}` };
        return fireOnRequest(draft, { ...fire, request: other }, random, nowMs);
      }),
    ],
  },
  'fires-follow-their-policy': {
    rule: 'While a run of its trigger has not ended, a fire is skipped or waits.',
    breaks: ['trigger'],
    seed: 7,
    circumstances: often,
    replacements: [triggerCommands('activeRuns', () => () => [])],
  },
} as const satisfies Readonly<Record<string, Mutant>>;
