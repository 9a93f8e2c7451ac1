/** Values of parameters that come from what has fired a trigger: `${trigger.NAME}`, and `${trigger.NAME.MEMBER}`. Pure. */
import { isMapping } from '@muster/common/spec/path';
import { closest } from '@muster/common/spec/suggest';
import type { PipelineParameter, PipelineParameterType, PipelineValue } from './model.ts';

type GivenParams = Readonly<Record<string, unknown>>;

const reference = /\$\{trigger\.([^}]*)\}/g;
const wholeReference = /^\$\{trigger\.([^}]*)\}$/;

const samples: Readonly<Record<PipelineParameterType, PipelineValue>> = {
  string: 'sample',
  int: 1,
  float: 1,
  bool: true,
  list: ['sample'],
};

export function refersToFire(value: unknown): value is string {
  return typeof value === 'string' && value.search(reference) >= 0;
}

/** With a sample of the right type for each value that only a fire has, so that all others can be checked before there is one. */
export function withFireSamples(params: readonly PipelineParameter[], given: GivenParams): GivenParams {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const parameter = params.find((each) => each.name === name);
      if (!refersToFire(value) || parameter === undefined) return [name, value];
      return [name, parameter.default ?? samples[parameter.type]];
    }),
  );
}

/** @param names what such a trigger has @returns what is wrong with the references in values */
export function referenceProblems(given: GivenParams, names: readonly string[]): readonly string[] {
  return Object.entries(given).flatMap(([name, value]) => {
    if (!refersToFire(value)) return [];
    return Array.from(value.matchAll(reference), ([, path = '']) => path.split('.')[0] ?? '')
      .filter((root) => !names.includes(root))
      .map((root) => {
        const meant = closest(root, names);
        const hint = meant === null ? `known are ${names.join(', ')}` : `did you mean "${meant}"?`;
        return `param "${name}": this kind of trigger has no trigger.${root}; ${hint}`;
      });
  });
}

export type FilledParams =
  | { readonly ok: true; readonly values: GivenParams }
  | { readonly ok: false; readonly problems: readonly string[] };

/** A text that is one reference and nothing else becomes the value with its type. @param facts of the fire, by name */
export function fillFromFire(given: GivenParams, facts: GivenParams): FilledParams {
  const problems: string[] = [];
  const valueOf = (name: string, path: string): unknown => {
    const value = memberOf(facts, path.split('.'));
    if (value === undefined || value === null || isMapping(value))
      problems.push(`param "${name}": trigger.${path.slice(0, 100)} is not a value`);
    return value;
  };
  const values = Object.entries(given).map(([name, value]): [string, unknown] => {
    if (!refersToFire(value)) return [name, value];
    const whole = wholeReference.exec(value);
    if (whole !== null) return [name, valueOf(name, whole[1] ?? '')];
    return [name, value.replaceAll(reference, (_text, path: string) => String(valueOf(name, path)))];
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, values: Object.fromEntries(values) };
}

function memberOf(value: unknown, [first, ...rest]: readonly string[]): unknown {
  if (first === undefined) return value;
  return isMapping(value) && Object.hasOwn(value, first) ? memberOf(value[first], rest) : undefined;
}
