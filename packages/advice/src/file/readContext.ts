/** From a plain value (of a file, of flags, of a call) to a checked training context. Everything that is wrong is found at once. */
import { checkFields, readFields } from '@muster/common/spec/kinds';
import { isMapping, type SpecPath, valueAt } from '@muster/common/spec/path';
import { describeValue, type Finding } from '@muster/common/spec/problems';
import { closest } from '@muster/common/spec/suggest';
import * as z from 'zod';
import type { AdviceTask } from '../actionShape.ts';
import { contextFields, contextPlaces, type TrainingContext } from '../contextFields.ts';
import { contradictionsIn } from '../contradictions.ts';
import type { GpuModel } from '../gpus.ts';
import { automlSchema } from './readAutoml.ts';

export type ContextResult =
  | { readonly ok: true; readonly task: AdviceTask; readonly context: TrainingContext }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** `task_type` and `training_context`. */
export const contextSchema = checkFields(
  z,
  contextFields,
  'a mapping of task_type and training_context, such as {model: {parameters: 7B}}',
);

/**
 * Never throws.
 * @param task the question that is asked; that of the file must be the same, or missing. null: the file says it
 * @param gpus what a GPU type and its memory are looked up in
 */
export function readContext(
  value: unknown,
  task: AdviceTask | null,
  gpus: readonly GpuModel[],
): ContextResult {
  const lacksTask = task !== null && isMapping(value) && value['task_type'] === undefined;
  const asked = lacksTask ? { ...value, task_type: task } : value;
  const checked = contextSchema.safeParse(asked, { jitless: true });
  if (!checked.success)
    return { ok: false, findings: checked.error.issues.flatMap((each) => of(each, asked)) };
  const { taskType, context } = readFields(contextFields, checked.data);
  const other: readonly Finding[] =
    task === null || taskType === task
      ? []
      : [wrong(['task_type'], taskType, `${task}: the question of this call`, null)];
  const findings = [...other, ...contradictionsIn(context, task ?? taskType, gpus)];
  return findings.length > 0 ? { ok: false, findings } : { ok: true, task: taskType, context };
}

/** The JSON Schema of what a context may say; what does not go together is found by `readContext` and `readAutoml` alone. */
export function contextJsonSchema(): Record<string, unknown> {
  const either = z.union([contextSchema, automlSchema]);
  return z.toJSONSchema(either, { target: 'draft-2020-12', io: 'input' });
}

function of(issue: z.core.$ZodIssue, root: unknown): readonly Finding[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknown(path, key));
  const written = valueAt(root, path);
  const place = contextPlaces.find((each) => each.path.join('.') === path.join('.'));
  const meant =
    typeof written === 'string'
      ? (closest(written, place?.field.words ?? []) ?? place?.field.suggest?.(written) ?? null)
      : null;
  return [wrong(path, written, issue.message, meant === written ? null : meant)];
}

function wrong(path: SpecPath, value: unknown, expected: string, suggestion: string | null): Finding {
  return { path, at: 'value', message: describeValue(value), expected, suggestion };
}

/** A key of another mapping is proposed with its whole path. */
function unknown(outer: SpecPath, key: string): Finding {
  const here = outer.join('.');
  const siblings = contextPlaces.filter(({ path }) => path.slice(0, -1).join('.') === here);
  const names = siblings.map(({ path }) => path.at(-1) ?? '');
  const elsewhere = contextPlaces.find(({ path }) => path.at(-1) === key);
  const suggestion = closest(key, names) ?? elsewhere?.path.join('.') ?? null;
  const expected = suggestion === null ? `one of ${names.join(', ')}` : null;
  return { path: [...outer, key], at: 'key', message: 'unknown key', expected, suggestion };
}
