/** From a plain value (of a file, of flags, of a call) to the checked context of an AutoML run. Everything that is wrong is found at once. */
import { checkFields, readFields } from '@muster/common/spec/kinds';
import { isMapping, type SpecPath, valueAt } from '@muster/common/spec/path';
import { describeValue, type Finding } from '@muster/common/spec/problems';
import * as z from 'zod';
import { type AutomlContext, automlFields, automlMetrics } from '../automl/automlFields.ts';

export type AutomlResult =
  | { readonly ok: true; readonly context: AutomlContext }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** `task_type` and `training_context`. */
export const automlSchema = checkFields(z, automlFields, 'a mapping of task_type and training_context');

/** Never throws. */
export function readAutoml(value: unknown): AutomlResult {
  const asked =
    isMapping(value) && value['task_type'] === undefined ? { ...value, task_type: 'setup_automl' } : value;
  const checked = automlSchema.safeParse(asked, { jitless: true });
  if (!checked.success)
    return { ok: false, findings: checked.error.issues.flatMap((each) => findingsOf(each, asked)) };
  const { context } = readFields(automlFields, checked.data);
  const findings = contradictions(context);
  return findings.length > 0 ? { ok: false, findings } : { ok: true, context };
}

function findingsOf(issue: z.core.$ZodIssue, root: unknown): readonly Finding[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code !== 'unrecognized_keys') return [wrong(path, valueAt(root, path), issue.message)];
  return issue.keys.map((key) => ({
    path: [...path, key],
    at: 'key',
    message: 'unknown key',
    expected: null,
    suggestion: null,
  }));
}

function contradictions({ task, modelType, data, constraints }: AutomlContext): readonly Finding[] {
  const inContext = (...path: readonly string[]) => ['training_context', ...path];
  const { metric, models, interpretable } = constraints;
  const found: Finding[] = [];
  const metrics: readonly string[] = task === null ? [] : automlMetrics[task];
  if (task !== null && metric !== null && !metrics.includes(metric))
    found.push(wrong(inContext('constraints', 'metric'), metric, `one for ${task}: ${metrics.join(', ')}`));
  if (modelType === 'timeseries' && data.timeColumn === null)
    found.push(
      wrong(inContext('data', 'time_column'), undefined, 'the column that orders the rows of a timeseries'),
    );
  if (interpretable && models !== null && models.some((each) => each !== 'linear' && each !== 'tree'))
    found.push(wrong(inContext('constraints', 'models'), models, 'linear and tree, which are interpretable'));
  if (models !== null && models.length === 0)
    found.push(wrong(inContext('constraints', 'models'), models, 'at least one model'));
  const unused = [data.target, data.timeColumn].find((name) => name !== null && data.ignore.includes(name));
  if (unused !== undefined)
    found.push(wrong(inContext('data', 'ignore'), unused, 'columns that are not the target or time_column'));
  return found;
}

function wrong(path: SpecPath, value: unknown, expected: string): Finding {
  return { path, at: 'value', message: describeValue(value), expected, suggestion: null };
}
