/** An AutoML run for people, and as JSON. Pure. */
import type { AutomlPlan } from '@muster/advice/automl/automlPlan';
import { formatFields, type View } from '../output/table.ts';
import type { AutomlEnd } from './drive.ts';
import type { AutomlProfile } from './workerLines.ts';

interface AutomlAnswer {
  readonly name: string;
  readonly dir: string;
  readonly task: string;
  readonly metric: string;
  readonly rows: number;
  readonly sweepId: string;
  readonly models: readonly string[];
  readonly tuning_results: {
    readonly best_params: Readonly<Record<string, unknown>>;
    /** In validation. */
    readonly best_score: number;
    readonly trials_completed: number;
  };
  readonly bestTrial: number;
  readonly ensembleMembers: number;
  readonly testScores: { readonly ensemble: number; readonly best: number; readonly baseline: number };
  readonly reports: readonly string[];
  readonly notes: readonly string[];
}

export function automlAnswer({ plan, profile, sweep, outcome }: AutomlEnd): AutomlAnswer {
  return {
    name: plan.name,
    dir: plan.dir,
    task: profile.task,
    metric: profile.metric,
    rows: profile.rows,
    sweepId: sweep.id,
    models: plan.models,
    tuning_results: {
      best_params: outcome.best.params,
      best_score: outcome.best.validation,
      trials_completed: outcome.trials,
    },
    bestTrial: outcome.best.trial,
    ensembleMembers: outcome.members,
    testScores: outcome.test,
    reports: plan.reports,
    notes: [...plan.notes, ...profile.notes],
  };
}

export function planText({ name, dir, models, sweep, notes }: AutomlPlan, { colours, width }: View): string {
  const { min_steps: first, reduction } = sweep.early_stopping;
  return formatFields(
    [
      ['Name', name],
      ['Directory', dir],
      ['Models', models.join(', ')],
      ['Trials', `${sweep.trials}, seed ${sweep.seed}`],
      ['Early stopping', `ASHA at ${first} % of the training rows, and at ${reduction} times as many`],
      ['Steps', 'profile of the data, trials, report'],
      ['Notes', notes.length === 0 ? null : notes.join('\n')],
    ],
    colours,
    width,
  );
}

export function profileText({ task, metric, rows, notes }: AutomlProfile): string {
  const lines = [`${rows} rows, ${task}, compared by ${metric}`, ...notes];
  return lines.map((line) => `${line}\n`).join('');
}

export function automlEndText(answer: AutomlAnswer, { colours, width, programName }: View): string {
  const { tuning_results: best, testScores: test, metric, ensembleMembers: members, sweepId } = answer;
  const { model, ...settings } = best.best_params;
  const pairs = Object.entries(settings).map(([key, value]) => `${key} ${shown(value)}`);
  const ensemble = members === 1 ? 'the best trial alone' : `${members} models`;
  const fields = formatFields(
    [
      [
        'Best trial',
        `${answer.bestTrial}, ${String(model)}: ${metric} ${shown(best.best_score)} in validation`,
      ],
      ['Parameters', pairs.join(', ')],
      ['Ensemble', ensemble],
      [
        'Test',
        `${metric} ${shown(test.ensemble)}; best trial ${shown(test.best)}, without a model ${shown(test.baseline)}`,
      ],
      ['Trials', `${best.trials_completed} complete, ${sweepId}`],
      ['Reports', answer.reports.join('\n')],
    ],
    colours,
    width,
  );
  return `${fields}\nNext: ${programName} sweep trials ${sweepId}\n`;
}

/** Five digits are enough to compare. */
function shown(value: unknown): string {
  return typeof value === 'number' ? String(Number(value.toPrecision(5))) : String(value);
}
