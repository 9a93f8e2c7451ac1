/** The sweep file: from a plain value to a checked sweep, and back. Constraints are checked by who can evaluate them. */
import { isDeepStrictEqual } from 'node:util';
import { isMapping, type SpecPath } from '@muster/common/spec/path';
import { isBatchName, namedParameters } from '@muster/common/spec/placeholder';
import type { Finding } from '@muster/common/spec/problems';
import { jobSpecToFile } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import { checkJobSpec } from '@muster/common/spec/validate';
import { betterValues, trainingMetricNames } from '@muster/common/training';
import type { Objective } from '../objective.ts';
import { endless, gridSize } from '../samplers/grid.ts';
import type { Parameter } from '../space.ts';
import type { StoppingRule } from '../stopping/rules.ts';
import { type OnOom, oomWords, seedName, seedPlaceholder, trialPlaceholder } from '../trialSpec.ts';
import { budgetToFile, readBudget, type SweepBudget } from './budget.ts';
import { type FileMapping, FileReader } from './findings.ts';
import { readParameters } from './parameters.ts';
import { readStopping, stoppingToFile } from './stopping.ts';
import { readWarmStart, type WarmStart, warmStartToFile } from './warmStart.ts';

const samplerNames = ['tpe', 'random', 'halton', 'grid'] as const;
export type SamplerName = (typeof samplerNames)[number];

export interface SweepSpec {
  readonly name: string;
  readonly sampler: SamplerName;
  readonly seed: number;
  /** How often each trial runs, each time with another seed. 1: there are none. */
  readonly seeds: number;
  /** How many trials there will be. null: every point of a grid. */
  readonly trials: number | null;
  /** Trials at the same time. null: as long as none waits for room, one more is started. */
  readonly parallel: number | null;
  /** After this number of consecutive failed trials, no more are started. */
  readonly maxFailures: number;
  /** Whether a trial some of whose metrics were lost counts as complete, with the value of those that arrived. */
  readonly acceptIncomplete: boolean;
  /** Of a trial whose job runs out of GPU memory: whether it is retried with a smaller batch, as any job, or has ended. */
  readonly onOom: OnOom;
  /** null: only the number of trials is limited. */
  readonly budget: SweepBudget | null;
  /** The first one, which names the best trial. */
  readonly objective: Objective;
  /** The others: what is best by all of them is a front of trials. */
  readonly furtherObjectives: readonly Objective[];
  /** null: every trial runs to its end. */
  readonly earlyStopping: StoppingRule | null;
  /** Each behind those that its `when` names. */
  readonly parameters: readonly Parameter[];
  /** In CEL. */
  readonly constraints: readonly string[];
  readonly warmStart: WarmStart;
  readonly job: JobSpec;
}

export type SweepFileResult =
  | { readonly ok: true; readonly sweep: SweepSpec }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** Of one sweep: what is kept of each in memory is small. */
export const trialsMax = 10_000;
const parallelMax = 1_000;
const constraintsMax = 50;
const seedMax = 2 ** 32 - 1;
const seedsMax = 100;

const keys = [
  'name',
  'sampler',
  'seed',
  'seeds',
  'trials',
  'parallel',
  'max_failures',
  'on_oom',
  'accept_incomplete',
  'budget',
  'objective',
  'objectives',
  'early_stopping',
  'parameters',
  'constraints',
  'warm_start',
  'job',
] as const;

/** Everything that is wrong is found at once. */
export function readSweep(value: unknown): SweepFileResult {
  const reader = new FileReader();
  const file = reader.mapping([], value, keys, 'a sweep: objective, parameters, trials and job');
  if (file === null) return { ok: false, findings: reader.findings };
  const job = readJob(reader, file['job']);
  const sampler = reader.word(['sampler'], file['sampler'], samplerNames, 'tpe');
  const parameters = readParameters(reader, file['parameters']);
  const budget = readBudget(reader, file['budget']);
  const trials = readTrials(reader, file);
  const isLimited = sampler === 'grid' || trials !== null || budget !== null;
  if (!isLimited && reader.findings.every(({ path }) => path.at(-1) !== 'trials'))
    reader.wrong(['trials'], undefined, 'how many trials there will be, such as trials: 50');
  const { objective, furtherObjectives } = readObjectives(reader, file);
  const sweep = {
    name: readName(reader, file['name'], job),
    sampler,
    seed: reader.wholeNumber(['seed'], file['seed'], [0, seedMax], 0),
    seeds: reader.wholeNumber(['seeds'], file['seeds'], [1, seedsMax], 1),
    // Without a number, as many as the budget allows.
    trials: trials === null && sampler !== 'grid' ? trialsMax : trials,
    budget,
    parallel: reader.wholeNumber(['parallel'], file['parallel'], [1, parallelMax], null),
    maxFailures: reader.wholeNumber(['max_failures'], file['max_failures'], [1, trialsMax], 5),
    acceptIncomplete: reader.yesOrNo(['accept_incomplete'], file['accept_incomplete']),
    onOom: reader.word(['on_oom'], file['on_oom'], oomWords, 'shrink'),
    objective,
    furtherObjectives,
    earlyStopping: readStopping(reader, file['early_stopping']),
    parameters,
    constraints: readConstraints(reader, file['constraints']),
    warmStart: readWarmStart(reader, file['warm_start'], sampler, parameters),
  };
  if (job !== null) refuseContradictions(reader, job, parameters);
  if (job !== null) refuseLeastBatch(reader, job, sweep);
  if (sweep.seeds > 1) refuseWithSeeds(reader, file, job, parameters);
  if (furtherObjectives.length > 0) refuseSingleMinded(reader, file);
  if (sampler === 'grid') refuseEndlessGrid(reader, parameters);
  if (job === null || reader.findings.length > 0) return { ok: false, findings: reader.findings };
  return { ok: true, sweep: { ...sweep, job } };
}

/** The file again, with the defaults of what it does not set. */
export function sweepToFile(sweep: SweepSpec): Readonly<Record<string, unknown>> {
  const { name, sampler, seed, seeds, trials, parallel, maxFailures, objective, constraints, job } = sweep;
  const { budget, earlyStopping, furtherObjectives } = sweep;
  return {
    name,
    sampler,
    seed,
    ...(seeds === 1 ? {} : { seeds }),
    ...(trials === null ? {} : { trials }),
    ...(parallel === null ? {} : { parallel }),
    max_failures: maxFailures,
    ...(sweep.onOom === 'shrink' ? {} : { on_oom: sweep.onOom }),
    ...(sweep.acceptIncomplete ? { accept_incomplete: true } : {}),
    ...(budget === null ? {} : { budget: budgetToFile(budget) }),
    objective: objectiveToFile(objective),
    ...(furtherObjectives.length === 0
      ? {}
      : { objectives: [objective, ...furtherObjectives].map(objectiveToFile) }),
    ...(earlyStopping === null ? {} : { early_stopping: stoppingToFile(earlyStopping) }),
    parameters: Object.fromEntries(sweep.parameters.map((each) => [each.name, parameterToFile(each)])),
    ...(constraints.length === 0 ? {} : { constraints }),
    ...warmStartToFile(sweep.warmStart),
    job: jobSpecToFile(job),
  };
}

function parameterToFile(parameter: Parameter): unknown {
  const when = Object.keys(parameter.when).length === 0 ? {} : { when: parameter.when };
  if (parameter.type === 'categorical') return { values: parameter.values, ...when };
  const { type, min, max, log, step } = parameter;
  return { type, min, max, ...(log ? { log } : {}), ...(step === null || log ? {} : { step }), ...when };
}

function readJob(reader: FileReader, value: unknown): JobSpec | null {
  if (!isMapping(value)) {
    reader.wrong(['job'], value, 'the job of each trial, as a job file has it');
    return null;
  }
  const checked = checkJobSpec(value);
  if (checked.ok) {
    if (checked.spec.phases.length > 0)
      reader.contradiction(
        ['job', 'phases'],
        'is not for trials of a sweep: a trial is one attempt at one set of parameters',
      );
    return checked.spec;
  }
  const inJob = (path: SpecPath) => ['job', ...path];
  reader.findings.push(...checked.findings.map((finding) => ({ ...finding, path: inJob(finding.path) })));
  return null;
}

/** They may be in the budget as well. */
function readTrials(reader: FileReader, file: FileMapping): number | null {
  const { trials, budget } = file;
  const limit = isMapping(budget) ? budget['trials'] : undefined;
  if (trials !== undefined && limit !== undefined)
    reader.contradiction(['budget', 'trials'], 'is the same as trials: give one of them');
  const [path, value] = limit === undefined ? [['trials'], trials] : [['budget', 'trials'], limit];
  return reader.wholeNumber(path, value, [1, trialsMax], null);
}

function readName(reader: FileReader, value: unknown, job: JobSpec | null): string {
  if (value === undefined) return job?.name ?? '';
  if (typeof value === 'string' && /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(value)) return value;
  reader.wrong(
    ['name'],
    value,
    '1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends',
  );
  return '';
}

function objectiveToFile({ metric, goal, of }: Objective): Readonly<Record<string, unknown>> {
  return typeof of === 'object' ? { metric, goal, at_step: of.atStep } : { metric, goal, of };
}

const objectivesMax = 4;

function readObjectives(
  reader: FileReader,
  { objective, objectives }: FileMapping,
): Pick<SweepSpec, 'objective' | 'furtherObjectives'> {
  const own = () => readObjective(reader, ['objective'], objective);
  if (objectives === undefined) return { objective: own(), furtherObjectives: [] };
  const all = Array.isArray(objectives) ? (objectives as unknown[]) : [];
  const [first, ...further] = all.map((each, index) => readObjective(reader, ['objectives', index], each));
  if (first === undefined || all.length > objectivesMax) {
    reader.wrong(
      ['objectives'],
      objectives,
      `a list of 1 to ${objectivesMax}, such as [{metric: eval_loss}, {metric: tokens_per_second}]`,
    );
    return { objective: first ?? own(), furtherObjectives: further };
  }
  // The complete file has both, so that whoever knows of one objective finds it.
  const isSame = (other: Objective) => isDeepStrictEqual(other, first);
  if (objective !== undefined && !isSame(own()))
    reader.contradiction(['objective'], 'is not the first of objectives', 'one of the two');
  return { objective: first, furtherObjectives: further };
}

/** What would mean something else, or nothing, where each trial runs several times. */
function refuseWithSeeds(
  reader: FileReader,
  file: FileMapping,
  job: JobSpec | null,
  parameters: readonly Parameter[],
): void {
  if (file['early_stopping'] !== undefined)
    reader.contradiction(
      ['early_stopping'],
      'compares one curve of each trial, and with seeds a trial has several',
      'a sweep without seeds first, and seeds for its best parameters',
    );
  if (parameters.some(({ name }) => name === seedName))
    reader.contradiction(['parameters', seedName], 'is set by seeds', 'another name');
  if (job === null) return;
  if (Object.hasOwn(job.params, seedName))
    reader.contradiction(['job', 'params', seedName], 'is set by seeds', 'another name');
  const { dir } = job.checkpoint;
  if (dir !== null && !dir.includes(seedPlaceholder))
    reader.contradiction(
      ['job', 'checkpoint', 'dir'],
      'all seeds of a trial would save to one directory',
      `a directory for each, with ${seedPlaceholder} in its path`,
    );
}

/** What knows of one objective only. */
function refuseSingleMinded(reader: FileReader, file: FileMapping): void {
  for (const key of ['early_stopping', 'warm_start'])
    if (file[key] !== undefined)
      reader.contradiction(
        [key],
        'looks at one value of a trial, and not at several objectives',
        'one objective',
      );
}

function readObjective(reader: FileReader, path: SpecPath, value: unknown): Objective {
  const preset: Objective = { metric: 'train_loss', goal: 'min', of: 'last' };
  const form = 'a mapping such as {metric: eval_loss, goal: min}';
  const file = reader.mapping(path, value, ['metric', 'goal', 'direction', 'of', 'at_step'], form);
  if (file === null) return preset;
  if (file['metric'] === undefined)
    reader.wrong([...path, 'metric'], undefined, trainingMetricNames.join(', '));
  const metric = reader.word([...path, 'metric'], file['metric'], trainingMetricNames, preset.metric);
  const usual = betterValues[metric] === 'high' ? 'max' : 'min';
  const goal = readGoal(reader, path, file, usual);
  if (file['at_step'] === undefined)
    return { metric, goal, of: reader.word([...path, 'of'], file['of'], ['last', 'best'], 'last') };
  if (file['of'] !== undefined) reader.contradiction([...path, 'of'], 'of and at_step exclude each other');
  const atStep = reader.wholeNumber([...path, 'at_step'], file['at_step'], [0, Number.MAX_SAFE_INTEGER], 0);
  return { metric, goal, of: { atStep } };
}

const goalOfDirection = { minimize: 'min', maximize: 'max' } as const;

/** `direction` is what Optuna calls it. */
function readGoal(
  reader: FileReader,
  objective: SpecPath,
  file: FileMapping,
  usual: Objective['goal'],
): Objective['goal'] {
  const path = [...objective, 'direction'];
  if (file['direction'] === undefined)
    return reader.word([...objective, 'goal'], file['goal'], ['min', 'max'], usual);
  if (file['goal'] !== undefined) reader.contradiction(path, 'goal and direction exclude each other');
  const direction = usual === 'min' ? 'minimize' : 'maximize';
  return goalOfDirection[reader.word(path, file['direction'], ['minimize', 'maximize'], direction)];
}

function readConstraints(reader: FileReader, value: unknown): readonly string[] {
  if (value === undefined) return [];
  const texts = Array.isArray(value) ? (value as unknown[]) : null;
  if (texts === null || texts.length > constraintsMax) {
    reader.wrong(
      ['constraints'],
      value,
      `a list of at most ${constraintsMax} conditions, such as ["layers * width <= 4096"]`,
    );
    return [];
  }
  return texts.flatMap((text, index) => {
    if (typeof text === 'string') return [text];
    reader.wrong(['constraints', index], text, 'a condition as text, such as "layers * width <= 4096"');
    return [];
  });
}

function refuseContradictions(reader: FileReader, job: JobSpec, parameters: readonly Parameter[]): void {
  if (job.array !== null) reader.contradiction(['job', 'array'], 'a trial is one job, not an array');
  if (job.after.length > 0) reader.contradiction(['job', 'after'], 'trials cannot wait for other jobs');
  for (const { name } of parameters)
    if (Object.hasOwn(job.params, name))
      reader.contradiction(['job', 'params', name], 'is a parameter of the sweep, which sets it');
  const { dir } = job.checkpoint;
  if (dir !== null && !dir.includes(trialPlaceholder))
    reader.contradiction(
      ['job', 'checkpoint', 'dir'],
      'all trials would save to one directory',
      `a directory for each trial, with ${trialPlaceholder} in its path`,
    );
}

/** Each trial is a job with one batch size, which must not begin below the bound of its retries. */
function refuseLeastBatch(
  reader: FileReader,
  { retry: { batchMin }, command, args }: JobSpec,
  { onOom, parameters }: Pick<SweepSpec, 'onOom' | 'parameters'>,
): void {
  if (batchMin === null) return;
  if (onOom === 'infeasible')
    reader.contradiction(
      ['job', 'retry', 'batch_min'],
      'has no effect with on_oom: infeasible',
      'on_oom: shrink',
    );
  const used = namedParameters([...command, ...args]);
  for (const parameter of parameters) {
    const values = parameter.type === 'categorical' ? parameter.values : [parameter.min];
    const least = Math.min(...values.map(Number).filter(Number.isFinite));
    if (!used.has(parameter.name) || !isBatchName(parameter.name) || least >= batchMin) continue;
    const message = `has ${least}, and job.retry.batch_min is ${batchMin}`;
    reader.contradiction(['parameters', parameter.name], message, `values from ${batchMin} on`);
  }
}

function refuseEndlessGrid(reader: FileReader, parameters: readonly Parameter[]): void {
  const without = endless({ parameters, allows: null });
  for (const { name } of without)
    reader.contradiction(
      ['parameters', name],
      'a grid cannot have every value of it',
      'a step, or a list of values',
    );
  if (without.length > 0) return;
  const size = gridSize({ parameters, allows: null });
  if (size === null || size > trialsMax)
    reader.contradiction(
      ['parameters'],
      'the grid has too many points',
      `at most ${trialsMax}; or another sampler`,
    );
}
