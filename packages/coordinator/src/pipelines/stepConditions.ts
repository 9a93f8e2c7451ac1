/** The conditions of a pipeline's steps. The library behind them is loaded when there is one. */
import { MusterError } from '@muster/common/errors';
import type { PipelineParameterType, PipelineSpec, PipelineValues } from '@muster/pipelines/model';
import type { CheckedCondition } from '../alerts/condition.ts';
import type { KnownName, ValueType } from '../alerts/names.ts';
import { SubjectValues } from '../alerts/subjectValues.ts';

/** @param outcomes of all steps, by name @returns null: it depends on what is not known */
export type StepCondition = (
  params: PipelineValues,
  outcomes: Readonly<Record<string, string>>,
) => boolean | null;

const celTypes: Readonly<Record<PipelineParameterType, ValueType>> = {
  string: 'string',
  int: 'int',
  float: 'double',
  bool: 'bool',
  list: 'list(string)',
};

/** By the names of the steps that have one. @throws {MusterError} `invalid` for one that is not a condition, with the column */
export async function conditionsOfSteps({
  steps,
  params,
}: Pick<PipelineSpec, 'steps' | 'params'>): Promise<ReadonlyMap<string, StepCondition>> {
  if (steps.every(({ when }) => when === null)) return new Map();
  const { checkCondition } = await import('../alerts/condition.ts');
  const known: Record<string, KnownName> = {
    steps: { type: 'map(string, string)', meaning: 'the states of the steps, by name' },
  };
  for (const { name, type } of params) known[name] = { type: celTypes[type], meaning: 'a parameter' };
  return new Map(
    steps.flatMap(({ name, group, when }): [string, StepCondition][] => {
      if (when === null) return [];
      const condition = checked(() => checkCondition(when, known), `${group}.${name}.when`);
      return [[name, (values, outcomes) => holds(condition, values, outcomes)]];
    }),
  );
}

function checked(check: () => CheckedCondition, path: string): CheckedCondition {
  try {
    return check();
  } catch (error) {
    const { column, message } = error as { column?: number; message: string };
    const problem = { path, message: `column ${column ?? 1}: ${message}`, expected: null, suggestion: null };
    throw new MusterError('invalid', `${path}: ${problem.message}`, { problems: [problem], cause: error });
  }
}

function holds(
  condition: CheckedCondition,
  params: PipelineValues,
  outcomes: Readonly<Record<string, string>>,
): boolean | null {
  const values = new SubjectValues((name) => {
    if (name === 'steps') return outcomes;
    const value = params[name] ?? null;
    return Array.isArray(value) ? value.map(String) : (value as string | number | boolean | null);
  });
  return condition.evaluate(values);
}
