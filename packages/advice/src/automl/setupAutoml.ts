/** `setup_automl`: what an AutoML run would do, and the file that starts it. Pure. */
import { hourMs, writeFields } from '@muster/common/spec/kinds';
import type { CostEstimate } from '../compute.ts';
import type { ConfigFile } from '../configFiles.ts';
import { cpuNode, pricesAsOf } from '../gpus.ts';
import type { PipelineConfig } from '../pipeline/designPipeline.ts';
import type { TuningResults } from '../tuning.ts';
import { yamlText } from '../yamlText.ts';
import { type AutomlContext, type AutomlModel, automlFields } from './automlFields.ts';
import { type AutomlSweep, automlPlan } from './automlPlan.ts';

export interface AutomlAdvice {
  readonly pipeline_config: PipelineConfig;
  readonly tuning_results: TuningResults;
  /** Of all trials, at most. null: it is not said how long they may take, or how many run at the same time. */
  readonly cost_estimate: CostEstimate | null;
  readonly name: string;
  readonly dir: string;
  readonly models: readonly AutomlModel[];
  /** null: log_loss or rmse, once the profile has found out what the target is. */
  readonly metric: string | null;
  readonly trials: number;
  /** null: as many as there is room for. */
  readonly parallel: number | null;
  readonly earlyStopping: AutomlSweep['early_stopping'];
  /** Ranges as a sweep file has them. */
  readonly parameters: readonly { readonly name: string; readonly range: object }[];
  readonly reports: readonly string[];
  readonly reasons: readonly string[];
  /** A task file. */
  readonly files: readonly ConfigFile[];
  readonly pricesAsOf: string;
  readonly assumptions: readonly string[];
  readonly sources: readonly string[];
}

/**
 * @param context has passed the checks of `readAutoml`
 * @param id of the run that the task has
 */
export function setupAutoml(context: AutomlContext, id: string): AutomlAdvice {
  const { constraints } = context;
  // The program is what `muster automl` adds: it counts nowhere in what is shown.
  const plan = automlPlan(context, { id, program: '', facts: null });
  const { early_stopping: earlyStopping, trials, parameters } = plan.sweep;
  const cost = costOf(context);
  return {
    pipeline_config: plan.pipeline_config,
    tuning_results: { best_params: {}, best_score: null, trials_completed: 0 },
    cost_estimate: cost,
    name: plan.name,
    dir: plan.dir,
    models: plan.models,
    metric: constraints.metric ?? defaultMetric(context),
    trials,
    parallel: constraints.parallel,
    earlyStopping,
    parameters: Object.entries(parameters).map(([name, range]) => ({ name, range })),
    reports: plan.reports,
    reasons: [
      ...modelReasons(context),
      `ASHA stops trials at ${earlyStopping.min_steps} % of the training rows, and at ${earlyStopping.reduction} times as many: ` +
        'one in three continues.',
      constraints.interpretable
        ? 'The best trial is used alone, so that people can follow it.'
        : 'The best trials are combined by greedy selection with replacement.',
      'A fifth of all rows is the test, which chooses nothing.',
    ],
    files: [
      {
        name: 'automl.yaml',
        about: 'task: muster automl -f automl.yaml',
        text: taskText(context),
        fits: true,
      },
    ],
    pricesAsOf,
    assumptions: [
      'nodes have Python 3.9 or newer with scikit-learn 1.2 or newer and pandas',
      `nodes see the data and ${plan.dir} at these paths`,
      ...(constraints.models === null && !constraints.interpretable
        ? ['models of xgboost and lightgbm are added where the Python of the nodes has them']
        : []),
      cost === null
        ? 'the cost is not known: give constraints.time and constraints.parallel'
        : `trials take the whole of the time, at ${cpuNode.usdPerHour} USD an hour for ${cpuNode.cores} cores`,
      ...plan.notes,
    ],
    sources: [
      'R. Caruana and others: Ensemble Selection from Libraries of Models, 2004.',
      'L. Li and others: A System for Massively Parallel Hyperparameter Tuning, 2020 (ASHA).',
    ],
  };
}

function defaultMetric({ task }: AutomlContext): string | null {
  if (task === null) return null;
  return task === 'classification' ? 'log_loss' : 'rmse';
}

function modelReasons({ constraints, framework }: AutomlContext): readonly string[] {
  if (constraints.models !== null) return ['The models are those that were asked for.'];
  if (constraints.interpretable)
    return ['Linear models and trees of at most four levels, which people can follow.'];
  const usual =
    'Linear models, forests, boosted trees and a network: none of them is the best on all tables.';
  return framework === 'sklearn' ? [usual] : [usual, `${framework}, which was asked for.`];
}

function costOf({ constraints, run }: AutomlContext): CostEstimate | null {
  const { timeMs, parallel } = constraints;
  if (timeMs === null || parallel === null) return null;
  const hours = timeMs / hourMs;
  const hourly = ((parallel * run.cpus) / cpuNode.cores) * cpuNode.usdPerHour;
  return {
    hourly_cost_usd: hourly,
    estimated_duration_hours: hours,
    total_cost_usd: hourly * hours,
  };
}

function taskText(context: AutomlContext): string {
  const written = writeFields(automlFields, { taskType: 'setup_automl', context });
  return yamlText({ ...written }, ['training_context']);
}
