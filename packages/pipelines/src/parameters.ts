/** Values of a pipeline's parameters: those that a run gives, and the defaults. Pure. */
import { describeValue } from '@muster/common/spec/problems';
import { closest } from '@muster/common/spec/suggest';
import type { PipelineParameter, PipelineParameterType, PipelineValue, PipelineValues } from './model.ts';

const textLengthMax = 10_000;
export const listLengthMax = 1_000;

export const typeWords: Readonly<Record<PipelineParameterType, string>> = {
  string: 'a text',
  int: 'a whole number',
  float: 'a number',
  bool: 'true or false',
  list: `a list of at most ${listLengthMax} texts and numbers`,
};

/** @returns null: it does not have the type */
export function valueOfType(type: PipelineParameterType, value: unknown): PipelineValue | null {
  switch (type) {
    case 'string':
      return typeof value === 'string' && isText(value) ? value : null;
    case 'int':
      return Number.isSafeInteger(value) ? (value as number) : null;
    case 'float':
      return typeof value === 'number' && Number.isFinite(value) ? value : null;
    case 'bool':
      return typeof value === 'boolean' ? value : null;
    default: {
      if (!Array.isArray(value) || value.length > listLengthMax) return null;
      return value.every(isPlain) ? value : null;
    }
  }
}

function isText(value: string): boolean {
  return value.length <= textLengthMax && !value.includes('\0');
}

function isPlain(value: unknown): value is string | number | boolean {
  if (typeof value === 'string') return isText(value);
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));
}

export type GivenValues =
  | { readonly ok: true; readonly values: PipelineValues }
  | { readonly ok: false; readonly problems: readonly string[] };

/** What a run gives, completed by the defaults. A value of the wrong type, an unknown name and a missing value are problems. */
export function completeValues(
  params: readonly PipelineParameter[],
  given: Readonly<Record<string, unknown>>,
): GivenValues {
  const names = params.map(({ name }) => name);
  const problems: string[] = [];
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const meant = closest(name, names);
    const known = names.length === 0 ? 'the pipeline has none' : `known are ${names.join(', ')}`;
    problems.push(`param "${name}": unknown; ${meant === null ? known : `did you mean "${meant}"?`}`);
  }
  const entries = params.flatMap(({ name, type, default: preset }) => {
    const value = Object.hasOwn(given, name) ? given[name] : preset;
    if (value === null || value === undefined) {
      problems.push(`param "${name}": missing; give it with --param ${name}=VALUE`);
      return [];
    }
    const checked = valueOfType(type, value);
    if (checked === null)
      problems.push(`param "${name}": ${describeValue(value)}; expected ${typeWords[type]}`);
    return checked === null ? [] : [[name, checked] as const];
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, values: Object.fromEntries(entries) };
}
