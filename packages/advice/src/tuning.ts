/** `tune_hyperparameters`: what to search, how, with how many trials, and what that costs. Pure. */
import { type CostEstimate, type EstimateRange, manageCompute } from './compute.ts';
import type { ConfigFile } from './configFiles.ts';
import type { TrainingContext } from './contextFields.ts';
import { cpuNode, type GpuModel, gpuOf, pricesAsOf } from './gpus.ts';
import { type TunedParameter, tuningSources, usualSpace } from './tuningSpace.ts';
import { yamlText } from './yamlText.ts';

/** Part of the contract with scripts: exactly these members. Nothing was tried yet. */
export interface TuningResults {
  readonly best_params: Readonly<Record<string, never>>;
  readonly best_score: null;
  readonly trials_completed: 0;
}

export interface TuningAdvice {
  readonly tuning_results: TuningResults;
  /** Of all trials together. null: it is not known how long one takes. */
  readonly cost_estimate: CostEstimate | null;
  readonly costRangeUsd: EstimateRange | null;
  readonly parameters: readonly TunedParameter[];
  readonly sampler: 'tpe' | 'halton';
  readonly earlyStopping: {
    readonly rule: 'asha';
    readonly min_steps: number;
    readonly reduction: number;
  } | null;
  readonly trials: number;
  /** At the same time. null: as many as there is room for. */
  readonly parallel: number | null;
  /** Of one that is not stopped early. */
  readonly trialHours: number | null;
  readonly reasons: readonly string[];
  /** A sweep file. */
  readonly files: readonly ConfigFile[];
  readonly pricesAsOf: string;
  readonly assumptions: readonly string[];
  readonly sources: readonly string[];
}

/** Of TPE: ten random ones, and then some for each parameter. */
const trialsPerParameter = 10;
const trialsUsual = [20, 100] as const;
/** Below that, points that fill the space evenly find more than a model of so few. */
const tpeTrialsMin = 20;

const reduction = 3;
/** Rungs at a 27th, a ninth, a third and the whole of the steps. */
const rungs = 3;
/**
 * Of the steps of trials without early stopping. Of four rungs, two thirds of the trials end at the first, two ninths at the second and
 * so on: 0.15. Promotions of what only looked good in the beginning, and trials that wait for none, double it.
 */
const ashaShare = { least: 0.15, middle: 0.3, most: 1 } as const;

/** Values that histograms of boosted trees take in a second on eight cores; a GPU takes five times as many. */
const treeValuesPerSecond = 1e9;
const gpuOverCpu = 5;
/** Trees times levels: what a library makes without other settings. */
const treePasses = 500 * 6;
const bytesPerValue = 8;

interface TrialCost {
  readonly hours: number;
  readonly mostHours: number;
  readonly hourly: number;
  readonly basis: string;
}

/**
 * @param context has passed the checks of `readContext` with the same GPUs
 * @returns `sweep`: what the sweep file says, which its reader has to take
 */
export function tuneHyperparameters(
  context: TrainingContext,
  gpus: readonly GpuModel[],
): { readonly advice: TuningAdvice; readonly sweep: SweepValue } {
  const { searchSpace } = context.tuning;
  const parameters = searchSpace === null ? usualSpace(context) : givenSpace(searchSpace);
  const cost = costOfTrial(context, gpus);
  const earlyStopping = stoppingOf(context);
  const share = earlyStopping === null ? { least: 1, middle: 1, most: 1 } : ashaShare;
  const { trials, reasons } = trialsFor(context, parameters.length, cost, share.middle);
  const sampler = trials >= tpeTrialsMin ? 'tpe' : 'halton';
  const parallel = parallelFor(context, trials, cost, share.middle);
  const sweep = sweepOf(context, { parameters, trials, sampler, parallel, earlyStopping });
  const hours = cost === null ? null : trials * share.middle * cost.hours;
  const advice: TuningAdvice = {
    tuning_results: { best_params: {}, best_score: null, trials_completed: 0 },
    cost_estimate:
      cost === null || hours === null
        ? null
        : {
            hourly_cost_usd: cost.hourly * (parallel ?? 1),
            estimated_duration_hours: hours / (parallel ?? 1),
            total_cost_usd: hours * cost.hourly,
          },
    costRangeUsd:
      cost === null
        ? null
        : [
            trials * share.least * cost.hours * cost.hourly,
            trials * share.most * cost.mostHours * cost.hourly,
          ],
    parameters,
    sampler,
    earlyStopping,
    trials,
    parallel,
    trialHours: cost?.hours ?? null,
    reasons: [
      ...reasons,
      sampler === 'tpe'
        ? `TPE learns from ${trials} trials where good values are.`
        : `${trials} trials are too few for a model of the space: Halton points fill it evenly.`,
      earlyStopping === null
        ? 'No early stopping: trees stop by the validation set, or the number of steps is not known (target_tokens and batch_size).'
        : `ASHA keeps one trial in ${reduction} at steps ${rungSteps(earlyStopping.min_steps).join(', ')}.`,
    ],
    files: [
      {
        name: 'sweep.yaml',
        about: 'sweep file: muster sweep -f sweep.yaml',
        text: yamlText(sweep, ['parameters', 'job']),
        fits: true,
      },
    ],
    pricesAsOf,
    assumptions: [
      cost === null ? 'the length of a trial is not known: give tuning.trial_minutes' : cost.basis,
      ...(earlyStopping === null
        ? []
        : [
            `with ASHA, trials run ${100 * share.middle} % of their steps on average; ${100 * share.least} % at best`,
          ]),
      'train.py stands for your program: it takes the flags of the command, and prints the metric beside its step',
    ],
    sources: tuningSources,
  };
  return { advice, sweep };
}

function givenSpace(space: Readonly<Record<string, unknown>>): readonly TunedParameter[] {
  return Object.entries(space).map(([name, range]) => ({
    name,
    range: range as TunedParameter['range'],
    why: 'as given',
  }));
}

function isTrees({ framework }: TrainingContext): boolean {
  return framework !== 'pytorch' && framework !== 'tensorflow';
}

function costOfTrial(context: TrainingContext, gpus: readonly GpuModel[]): TrialCost | null {
  const { compute, tuning, model } = context;
  const gpu = gpuOf(compute, gpus);
  const hourly = gpu === null ? cpuNode.usdPerHour : gpu.usdPerHour * (compute.gpuCount ?? 1);
  if (tuning.trialMinutes !== null && (gpu !== null || isTrees(context))) {
    const hours = tuning.trialMinutes / 60;
    return { hours, mostHours: hours, hourly, basis: `a trial takes ${tuning.trialMinutes} min, as given` };
  }
  if (isTrees(context)) {
    if (context.dataSizeGb === null) return null;
    const rate = treeValuesPerSecond * (gpu === null ? 1 : gpuOverCpu);
    const hours = ((context.dataSizeGb * 1e9) / bytesPerValue) * (treePasses / rate / 3_600);
    return {
      hours,
      mostHours: 3 * hours,
      hourly,
      basis: `boosted trees take ${rate.toExponential(0)} values a second; 500 trees of 6 levels`,
    };
  }
  const isCounted =
    context.training.targetTokens !== null || (context.modelType === 'nlp' && context.dataSizeGb !== null);
  if (model.parameters === null || !isCounted) return null;
  // The budget is that of the sweep, not of one trial.
  const { recommended } = manageCompute({ ...context, budget: { usd: null, hours: null } }, gpus);
  if (recommended === null) return null;
  return {
    hours: recommended.estimated_duration_hours,
    mostHours: recommended.durationRangeHours[1],
    hourly: recommended.hourly_cost_usd,
    basis: `a trial is a whole training on ${recommended.gpuCount} × ${recommended.gpu}, as advise compute estimates it`,
  };
}

function trialsFor(
  { tuning, budget }: TrainingContext,
  parameterCount: number,
  cost: TrialCost | null,
  share: number,
): { readonly trials: number; readonly reasons: readonly string[] } {
  const [least, most] = trialsUsual;
  const wanted = tuning.trials ?? Math.min(most, Math.max(least, trialsPerParameter * parameterCount));
  const why =
    tuning.trials === null
      ? `${wanted} trials: ${trialsPerParameter} for each of ${parameterCount} parameters, from ${least} to ${most}.`
      : `${wanted} trials, as given.`;
  if (cost === null || budget.usd === null) return { trials: wanted, reasons: [why] };
  const each = cost.hourly * cost.mostHours * share;
  const affordable = Math.max(1, Math.floor(budget.usd / each));
  if (affordable >= wanted) return { trials: wanted, reasons: [why] };
  const usd = Number(each.toPrecision(2));
  return {
    trials: affordable,
    reasons: [
      why,
      each > budget.usd
        ? `One trial may cost ${usd} USD, which is more than the budget of ${budget.usd} USD.`
        : `${budget.usd} USD are enough for ${affordable} of them, at ${usd} USD each.`,
    ],
  };
}

/** As many at the same time as the deadline needs. */
function parallelFor(
  { budget }: TrainingContext,
  trials: number,
  cost: TrialCost | null,
  share: number,
): number | null {
  if (cost === null || budget.hours === null) return null;
  return Math.min(trials, 1_000, Math.max(1, Math.ceil((trials * share * cost.mostHours) / budget.hours)));
}

function stoppingOf(context: TrainingContext): TuningAdvice['earlyStopping'] {
  const { training, model, dataSizeGb, modelType } = context;
  if (isTrees(context) || training.batchSize === null) return null;
  const bytesPerToken = 4;
  const tokens =
    training.targetTokens ??
    (modelType === 'nlp' && dataSizeGb !== null
      ? (dataSizeGb * 1e9 * training.epochs) / bytesPerToken
      : null);
  if (tokens === null) return null;
  const steps = tokens / (training.batchSize * model.sequenceLength);
  return { rule: 'asha', min_steps: Math.max(1, Math.round(steps / reduction ** rungs)), reduction };
}

function rungSteps(minSteps: number): readonly number[] {
  return Array.from({ length: rungs }, (_, index) => minSteps * reduction ** index);
}

export type SweepValue = Readonly<Record<string, unknown>>;

function sweepOf(
  context: TrainingContext,
  {
    parameters,
    trials,
    sampler,
    parallel,
    earlyStopping,
  }: Pick<TuningAdvice, 'parameters' | 'trials' | 'sampler' | 'parallel' | 'earlyStopping'>,
): SweepValue {
  const { tuning, compute } = context;
  const goal = tuning.direction === null ? {} : { goal: tuning.direction === 'minimize' ? 'min' : 'max' };
  const gpuCount = compute.gpuCount ?? (isTrees(context) ? 0 : 1);
  const nodes = Math.ceil(gpuCount / compute.gpusPerNode);
  const resources =
    gpuCount === 0 ? { cpus: cpuNode.cores } : { nodes, gpus: gpuCount / nodes, ...gpuType(compute.gpuType) };
  const program = gpuCount > 1 ? ['torchrun', 'train.py'] : ['python', 'train.py'];
  return {
    name: 'tune',
    sampler,
    trials,
    ...(parallel === null ? {} : { parallel }),
    objective: { metric: tuning.metric, ...goal, of: 'best' },
    ...(earlyStopping === null ? {} : { early_stopping: earlyStopping }),
    parameters: Object.fromEntries(parameters.map(({ name, range }) => [name, range])),
    job: { command: [...program, ...parameters.map(({ name }) => `--${name}={${name}}`)], resources },
  };
}

function gpuType(type: string | null): Readonly<Record<string, string>> {
  return type === null ? {} : { gpu_type: type.toUpperCase() };
}
