/** The parameters of a sweep file. */
import type { SpecPath } from '@muster/common/spec/path';
import { isMapping } from '@muster/common/spec/path';
import {
  type FloatParameter,
  type IntParameter,
  type Parameter,
  type ParameterValue,
  valueAtIndex,
  valueCount,
  type When,
} from '../space.ts';
import { reservedNames } from '../trialSpec.ts';
import type { FileMapping, FileReader } from './findings.ts';

const parametersMax = 100;
const valuesMax = 1_000;
const textLengthMax = 1_000;
/** Far above real parameters, and exact in every calculation. */
const wholeMax = 2 ** 40;
const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const parameterForm = 'a list of values, or a mapping such as {type: float, min: 1e-5, max: 1e-1, log: true}';

/** @returns in an order in which each stands behind those that its `when` names */
export function readParameters(reader: FileReader, value: unknown): readonly Parameter[] {
  const path = ['parameters'];
  if (!isMapping(value) || Object.keys(value).length === 0) {
    reader.wrong(
      path,
      value,
      'a mapping of parameters, such as {lr: {type: float, min: 1e-5, max: 1e-1, log: true}}',
    );
    return [];
  }
  const entries = Object.entries(value);
  if (entries.length > parametersMax) {
    reader.contradiction(path, `${entries.length} parameters`, `at most ${parametersMax}`);
    return [];
  }
  const parameters = entries.flatMap(
    ([name, each]) => readParameter(reader, [...path, name], name, each) ?? [],
  );
  return inOrder(reader, parameters);
}

function readParameter(reader: FileReader, path: SpecPath, name: string, value: unknown): Parameter | null {
  if (!namePattern.test(name) || reservedNames.includes(name)) {
    const message = 'is not a valid name';
    const expected = `letters, digits and "_", and none of ${reservedNames.join(', ')}`;
    reader.findings.push({ path, at: 'key', message, expected, suggestion: null });
    return null;
  }
  if (Array.isArray(value)) return categorical(reader, path, name, value, {});
  if (!isMapping(value)) {
    reader.wrong(path, value, parameterForm);
    return null;
  }
  const when = readWhen(reader, [...path, 'when'], value['when']);
  const type = reader.word([...path, 'type'], value['type'], ['float', 'int', 'choice'], 'choice');
  if (type === 'choice' && value['values'] !== undefined) {
    reader.mapping(path, value, ['type', 'values', 'when'], parameterForm);
    return categorical(reader, [...path, 'values'], name, value['values'], when);
  }
  if (type === 'choice') {
    const hint = value['min'] === undefined ? parameterForm : 'type: float, or type: int';
    reader.contradiction(path, value['min'] === undefined ? 'has no values' : 'has no type', hint);
    return null;
  }
  reader.mapping(path, value, ['type', 'min', 'max', 'log', 'step', 'when'], parameterForm);
  return numeric(reader, path, value, { name, type, when });
}

function numeric(
  reader: FileReader,
  path: SpecPath,
  value: FileMapping,
  { name, type, when }: { readonly name: string; readonly type: 'float' | 'int'; readonly when: When },
): Parameter | null {
  const before = reader.findings.length;
  const min = readNumber(reader, [...path, 'min'], value['min'], type);
  const max = readNumber(reader, [...path, 'max'], value['max'], type);
  const log = reader.yesOrNo([...path, 'log'], value['log']);
  const step =
    value['step'] === undefined ? null : readNumber(reader, [...path, 'step'], value['step'], type);
  if (step !== null && !(step > 0)) reader.wrong([...path, 'step'], value['step'], 'a number above 0');
  if (log && step !== null)
    reader.contradiction(
      [...path, 'step'],
      'log and step exclude each other',
      'one of the two, or a list of values',
    );
  if (log && !(min > 0))
    reader.wrong([...path, 'min'], value['min'], `a number above 0, because of log: true`);
  if (min > max) reader.contradiction([...path, 'max'], `${max} is below min, which is ${min}`);
  if (reader.findings.length > before) return null;
  const shape = { name, when, min, max, log };
  const parameter: FloatParameter | IntParameter =
    type === 'int' ? { ...shape, type, step: step ?? 1 } : { ...shape, type, step };
  return parameter;
}

function readNumber(reader: FileReader, path: SpecPath, value: unknown, type: 'float' | 'int'): number {
  const isFit =
    typeof value === 'number' &&
    Number.isFinite(value) &&
    (type === 'float' || (Number.isInteger(value) && Math.abs(value) <= wholeMax));
  if (!isFit)
    reader.wrong(path, value, type === 'int' ? `a whole number of at most ${wholeMax}` : 'a number');
  return isFit ? value : Number.NaN;
}

function categorical(
  reader: FileReader,
  path: SpecPath,
  name: string,
  value: unknown,
  when: When,
): Parameter | null {
  const values = Array.isArray(value) ? (value as unknown[]) : [];
  if (values.length === 0 || values.length > valuesMax) {
    reader.wrong(path, value, `a list of 1 to ${valuesMax} values`);
    return null;
  }
  const wrong = values.findIndex((each) => !isValue(each));
  if (wrong !== -1) {
    reader.wrong(
      [...path, wrong],
      values[wrong],
      `a number, true, false, or text of at most ${textLengthMax} characters`,
    );
    return null;
  }
  const twice = values.findIndex((each, index) => values.indexOf(each) !== index);
  if (twice !== -1) {
    reader.contradiction([...path, twice], `${JSON.stringify(values[twice])} is in the list twice`);
    return null;
  }
  return { name, type: 'categorical', values: values.filter(isValue), when };
}

function isValue(value: unknown): value is ParameterValue {
  if (typeof value === 'string') return value.length <= textLengthMax && !/\p{Cc}/u.test(value);
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));
}

function readWhen(reader: FileReader, path: SpecPath, value: unknown): When {
  if (value === undefined) return {};
  if (!isMapping(value)) {
    reader.wrong(path, value, 'a mapping such as {optimizer: sgd}, or {optimizer: [sgd, lion]}');
    return {};
  }
  const entries = Object.entries(value).map(([name, each]) => {
    const values: readonly unknown[] = Array.isArray(each) ? each : [each];
    if (values.length === 0 || !values.every(isValue))
      reader.wrong([...path, name], each, `a value of ${name}, or a list of them`);
    return [name, values.filter(isValue)] as const;
  });
  return Object.fromEntries(entries);
}

/** Conditions name parameters that exist, values that they have, and never each other in a circle. */
function inOrder(reader: FileReader, parameters: readonly Parameter[]): readonly Parameter[] {
  const byName = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  for (const { name, when } of parameters)
    for (const [other, values] of Object.entries(when)) {
      const path = ['parameters', name, 'when', other];
      const named = byName.get(other);
      if (named === undefined) reader.contradiction(path, `there is no parameter "${other}"`);
      else if (Number.isFinite(valueCount(named)) && valueCount(named) <= valuesMax) {
        const known = Array.from({ length: valueCount(named) }, (_, index) => valueAtIndex(named, index));
        const strange = values.find((value) => !known.includes(value));
        if (strange !== undefined)
          reader.contradiction(
            path,
            `${other} never is ${JSON.stringify(strange)}`,
            known.slice(0, 20).join(', '),
          );
      }
    }
  const ordered: Parameter[] = [];
  const placed = new Set<string>();
  let waiting = [...parameters];
  while (waiting.length > 0) {
    const ready = waiting.filter(({ when }) =>
      Object.keys(when).every((name) => placed.has(name) || !byName.has(name)),
    );
    if (ready.length === 0) {
      const names = waiting.map(({ name }) => name);
      reader.contradiction(
        ['parameters', names[0] ?? '', 'when'],
        `conditions in a circle: ${names.join(', ')}`,
      );
      return ordered;
    }
    ordered.push(...ready);
    for (const { name } of ready) placed.add(name);
    waiting = waiting.filter(({ name }) => !placed.has(name));
  }
  return ordered;
}
