/** The job of a trial: the job of the sweep with the values of the parameters filled in. Pure. */
import { retriedCauses } from '@muster/common/spec/causes';
import type { JobSpec } from '@muster/common/spec/types';
import type { Parameter, Point } from './space.ts';

/** Labels of a trial's job. */
export const sweepLabel = 'muster.sweep';
export const trialLabel = 'muster.trial';
/** Of a trial that runs once for each of several seeds. */
const seedLabel = 'muster.seed';
/** A parameter cannot have one of these names: they stand for something else in a job. */
export const reservedNames: readonly string[] = ['trial', 'resume', 'array_index'];

export const trialPlaceholder = '{trial}';
export const seedPlaceholder = '{seed}';
/** The name of the seed among the parameters of the job. */
export const seedName = 'seed';
/** The longest name of a job, without room for a hyphen and the number of a trial. */
const nameLengthMax = 50;

/** `shrink`: its job is retried with a smaller batch. `infeasible`: it has ended. */
export const oomWords = ['shrink', 'infeasible'] as const;
export type OnOom = (typeof oomWords)[number];

export interface TrialOf {
  readonly job: JobSpec;
  readonly parameters: readonly Parameter[];
  readonly number: number;
  readonly point: Point;
  /** null: each trial runs once, and `seed` is a name as any other. */
  readonly seed: number | null;
  readonly onOom: OnOom;
}

/**
 * `{name}` in command and args becomes a parameter of the job, which scales batch sizes and learning rates after failures as those of
 * any job. In the environment, the working directory and the checkpoint directory it is filled in here, as is `{trial}` everywhere.
 * `{seed}` is such a parameter where there are seeds. What names a parameter that does not apply is dropped: an argument, or a variable.
 * In the text of a shell it becomes nothing.
 * @param sweepId for its labels; null: it is a job of its own
 */
export function trialSpec(
  { job, parameters, number, point, seed, onOom }: TrialOf,
  sweepId: string | null,
): JobSpec {
  const values: Point = seed === null ? point : { ...point, [seedName]: seed };
  const absent = parameters.filter(({ name }) => !Object.hasOwn(point, name)).map(({ name }) => name);
  const namesAbsent = (text: string) => absent.some((name) => text.includes(`{${name}}`));
  const withoutAbsent = (text: string) =>
    absent.reduce((filled, name) => filled.replaceAll(`{${name}}`, ''), text);
  const withTrial = (text: string) => text.replaceAll(trialPlaceholder, String(number));
  const fill = (text: string) =>
    withTrial(text).replaceAll(/\{([A-Za-z_]\w*)\}/g, (whole, name: string) =>
      Object.hasOwn(values, name) ? String(values[name]) : whole,
    );
  const fillOrNull = (text: string | null) => (text === null ? null : fill(withoutAbsent(text)));
  const isShellText = isShell(job.command);
  const command = job.command.flatMap((argument, index) => {
    if (isShellText && index === 2) return [withTrial(withoutAbsent(argument))];
    return namesAbsent(argument) ? [] : [withTrial(argument)];
  });
  const kept = Object.entries(job.env).filter(([, value]) => !namesAbsent(value));
  const params = Object.entries(values).map(
    ([name, value]) => [name, typeof value === 'boolean' ? String(value) : value] as const,
  );
  return {
    ...job,
    name: `${job.name.slice(0, nameLengthMax).replace(/-+$/, '')}-${number}${seed === null ? '' : `-s${seed}`}`,
    command,
    args: job.args.filter((argument) => !namesAbsent(argument)).map(withTrial),
    env: {
      ...Object.fromEntries(kept.map(([name, value]) => [name, fill(value)])),
      MUSTER_TRIAL: String(number),
      MUSTER_TRIAL_PARAMS: JSON.stringify(point),
      ...(seed === null ? {} : { MUSTER_PARAM_SEED: String(seed) }),
    },
    workdir: fillOrNull(job.workdir),
    checkpoint: { ...job.checkpoint, dir: fillOrNull(job.checkpoint.dir) },
    retry:
      onOom === 'shrink'
        ? job.retry
        : { ...job.retry, on: retriedCauses(job.retry.on).filter((cause) => cause !== 'cuda_oom') },
    params: { ...job.params, ...Object.fromEntries(params) },
    labels:
      sweepId === null
        ? job.labels
        : {
            ...job.labels,
            [sweepLabel]: sweepId,
            [trialLabel]: String(number),
            ...(seed === null ? {} : { [seedLabel]: String(seed) }),
          },
  };
}

/** A command whose third part is the text of a shell. */
function isShell(command: readonly string[]): boolean {
  return command.length >= 3 && /(?:^|\/)(?:ba|da|z)?sh$/.test(command[0] ?? '') && command[1] === '-c';
}

/** Parameters that nothing in the job names: their trials read MUSTER_TRIAL_PARAMS, or differ in nothing. */
export function unusedParameters(job: JobSpec, parameters: readonly Parameter[]): readonly string[] {
  const texts = textsOf(job);
  return parameters
    .map(({ name }) => name)
    .filter((name) => !texts.some((text) => text.includes(`{${name}}`)));
}

/** Whether its command or variables pass the seed to the program; a directory does not. */
export function namesSeed({ command, args, env }: JobSpec): boolean {
  return [...command, ...args, ...Object.values(env)].some((text) => text.includes(seedPlaceholder));
}

/** Where `{name}` is filled in. */
function textsOf({ command, args, env, workdir, checkpoint }: JobSpec): readonly string[] {
  return [...command, ...args, ...Object.values(env), workdir ?? '', checkpoint.dir ?? ''];
}
