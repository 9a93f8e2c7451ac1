/** What the training actions share: their names, the form of their input, and the settings that scripts send with each of them. */
import {
  type AnyField,
  choice,
  mapping,
  number,
  required,
  type SpecFields,
  wholeNumber,
} from '@muster/common/spec/kinds';

export const gpuTypes = ['t4', 'v100', 'a100', 'h100'] as const;
export type GpuType = (typeof gpuTypes)[number];

export const strategies = [
  'none',
  'data_parallel',
  'model_parallel',
  'pipeline_parallel',
  'fsdp',
  'deepspeed',
] as const;
export type StrategyWord = (typeof strategies)[number];

/** The kinds of the settings of the contract. What a setting means, and its default, are those of the action. */
export const sharedKinds = {
  dataSizeGb: number([0, 1e9], 'GB, a number above 0', { isAboveMin: true }),
  gpuType: choice(gpuTypes),
  gpuCount: wholeNumber(1, 128),
  memoryGb: wholeNumber(1, 1_024),
  storageGb: wholeNumber(1, 100_000_000),
  epochs: wholeNumber(1, 100_000),
  batchSize: wholeNumber(1, 10_000_000),
  distributedStrategy: choice(strategies),
};

export const adviceTasks = [
  'design_pipeline',
  'configure_distributed',
  'tune_hyperparameters',
  'manage_compute',
] as const;
/** The actions that are about the training of one model. */
export type AdviceTask = (typeof adviceTasks)[number];

export const trainingActions = [...adviceTasks, 'setup_automl'] as const;
export type TrainingAction = (typeof trainingActions)[number];

/** `task_type` and `training_context`. @param example a value of the context */
export function actionFields<const Task extends TrainingAction, Fields extends SpecFields>(
  tasks: readonly Task[],
  context: Fields,
  example: string,
) {
  return {
    taskType: required('task_type', choice(tasks), { about: 'The question.' }),
    context: required('training_context', mapping(context, `a mapping such as ${example}`), {
      about: 'What is known of the training.',
    }),
  };
}

/** A setting with its place in the file. */
export interface ContextPlace {
  readonly path: readonly string[];
  readonly field: AnyField;
}

/** Every setting, outer ones before those within. */
export function settingPlaces(fields: SpecFields, outer: readonly string[] = []): readonly ContextPlace[] {
  return Object.values(fields).flatMap((each) => {
    const path = [...outer, each.key];
    return [{ path, field: each }, ...settingPlaces(each.fields ?? {}, path)];
  });
}
