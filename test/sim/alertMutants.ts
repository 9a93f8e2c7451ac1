/** Mutants of alerts and of budgets of tokens. */
import type * as alertCursorModule from '@muster/coordinator/alertWatch/alertCursor';
import type * as alertCommandsModule from '@muster/coordinator/commands/alerts';
import type * as budgetsModule from '@muster/coordinator/commands/budgets';
import type * as budgetLimitsModule from '@muster/coordinator/reconcilers/budgetLimits';
import type * as alertStateModule from '@muster/coordinator/state/alerts';
import { type Mutant, replacing } from './mutant.ts';
import { faultsOf } from './plan.ts';

const coordinator = 'packages/coordinator/src';
const alertCursor = replacing<typeof alertCursorModule>(`${coordinator}/alertWatch/alertCursor.ts`);
const alertCommands = replacing<typeof alertCommandsModule>(`${coordinator}/commands/alerts.ts`);
const alertState = replacing<typeof alertStateModule>(`${coordinator}/state/alerts.ts`);
const budgets = replacing<typeof budgetsModule>(`${coordinator}/commands/budgets.ts`);
const budgetLimits = replacing<typeof budgetLimitsModule>(`${coordinator}/reconcilers/budgetLimits.ts`);

export const alertMutants = {
  'what-fires-is-stored': {
    rule: 'What fires is stored with its event, so that it fires once.',
    breaks: ['alert'],
    seed: 1,
    replacements: [alertState('DraftedAlerts.putEpisode', () => () => {})],
  },
  'what-fires-is-resolved': {
    rule: 'What fires is resolved when its condition no longer holds.',
    breaks: ['alert'],
    seed: 1,
    circumstances: { hasAlerts: true },
    replacements: [alertCommands('resolveAlert', () => () => {})],
  },
  'ends-before-a-kill-are-looked-at': {
    rule: 'A job that ended just before a kill is looked at after the next start.',
    breaks: ['alert'],
    seed: 1,
    circumstances: { hasAlerts: true, faults: faultsOf(3_000, 'killCoordinator') },
    replacements: [alertCursor('AlertCursor.catchUp', () => async () => {})],
  },
  'submits-count-in-the-budget': {
    rule: 'A submit is counted in the budget of its token.',
    breaks: ['budget'],
    seed: 1,
    circumstances: { budgets: 1 },
    replacements: [budgets('countInBudget', () => () => {})],
  },
  'used-up-budgets-stop-jobs': {
    rule: 'The jobs of a budget whose GPU-hours are used up are stopped.',
    breaks: ['budget'],
    seed: 2,
    circumstances: { budgets: 2 },
    replacements: [budgetLimits('enforceBudgets', () => () => [])],
  },
} as const satisfies Readonly<Record<string, Mutant>>;
