/** The steps of a pipeline file, one by one. What they say of each other is checked in `graph.ts`. */
import { artifactTypes } from '@muster/common/spec/artifactFields';
import { parseDurationMs } from '@muster/common/spec/duration';
import { isMapping, type SpecPath } from '@muster/common/spec/path';
import type { FileMapping, FileReader } from '@muster/experiments/file/findings';
import {
  type PipelineStep,
  type PlainValue,
  type StepGroup,
  type StepInput,
  type StepOutput,
  type StepWork,
} from '../model.ts';
import { listLengthMax, valueOfType } from '../parameters.ts';
import { referencesIn } from '../substitute.ts';
import { variableForm, variableName } from './parameters.ts';

const stepsMax = 1_000;
const namesMax = 100;
const pathLengthMax = 1_000;
const stepName = /^[a-z](?:[a-z0-9_-]{0,38}[a-z0-9])?$/;
export const stepNameForm =
  '1 to 40 lower-case letters, digits, "-" and "_", with a letter first and a letter or digit last';
const outputReference = /^([a-z][a-z0-9_-]{0,39})\.([A-Za-z_][A-Za-z0-9_]{0,63})$/;
/** Of a job file: a step has them too, because a command has no job file of its own. */
const jobKeys = ['prepare_timeout'] as const;
const stepKeys = [
  'job',
  'sweep',
  'run',
  'after',
  'inputs',
  'outputs',
  'for_each',
  'when',
  'retries',
  'timeout',
  'cache',
  ...jobKeys,
] as const;

export function readSteps(reader: FileReader, group: StepGroup, value: unknown): readonly PipelineStep[] {
  if (value === undefined && group !== 'steps') return [];
  const count = isMapping(value) ? Object.keys(value).length : 0;
  if (!isMapping(value) || count === 0 || count > stepsMax) {
    reader.wrong(
      [group],
      value,
      `a mapping of 1 to ${stepsMax} steps, such as {train: {job: {command: python train.py}}}`,
    );
    return [];
  }
  return Object.entries(value).flatMap(([name, each]) => {
    const path = [group, name];
    if (!stepName.test(name)) {
      reader.contradiction(path, 'is not a valid name', stepNameForm);
      return [];
    }
    const file = reader.mapping(path, each, stepKeys, 'a step with a job, a sweep, or a command under run');
    const step = file === null ? null : readStep(reader, path, file);
    return step === null ? [] : [{ ...step, name, group }];
  });
}

function readStep(
  reader: FileReader,
  path: SpecPath,
  file: FileMapping,
): Omit<PipelineStep, 'name' | 'group'> | null {
  const work = readWork(reader, path, file);
  const rest = {
    jobSettings: Object.fromEntries(
      jobKeys.flatMap((key) => (file[key] === undefined ? [] : [[key, file[key]]])),
    ),
    after: readAfter(reader, [...path, 'after'], file['after']),
    inputs: readInputs(reader, [...path, 'inputs'], file['inputs']),
    outputs: readOutputs(reader, [...path, 'outputs'], file['outputs']),
    forEach: readForEach(reader, [...path, 'for_each'], file['for_each']),
    when: readWhen(reader, [...path, 'when'], file['when']),
    retries: readRetries(reader, [...path, 'retries'], file['retries']),
    timeoutMs: readDuration(reader, [...path, 'timeout'], file['timeout']),
    cache: readCache(reader, [...path, 'cache'], file['cache']),
  };
  if (work?.kind === 'sweep') {
    const why = 'a sweep has one output, "best": the parameters of its best trial';
    if (rest.outputs.length > 0) reader.contradiction([...path, 'outputs'], why);
    if (rest.cache !== null) reader.contradiction([...path, 'cache'], 'sweeps are not cached');
  }
  return work === null ? null : { work, ...rest };
}

function readWork(reader: FileReader, path: SpecPath, file: FileMapping): StepWork | null {
  const kinds = (['job', 'sweep', 'run'] as const).filter((kind) => file[kind] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    reader.contradiction(
      path,
      kind === undefined ? 'has nothing to run' : `has ${kinds.join(' and ')}`,
      'one of job, sweep and run',
    );
    return null;
  }
  const value = file[kind];
  if (kind !== 'run') {
    if (isMapping(value)) return { kind, file: value };
    reader.wrong([...path, kind], value, `a mapping, as a ${kind} file has it`);
    return null;
  }
  const isText = typeof value === 'string' && value.trim() !== '';
  const isList = Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string');
  if (isText || isList) return { kind, command: value as string | readonly string[] };
  reader.wrong([...path, kind], value, 'a command, such as [python, prepare.py], or text for a shell');
  return null;
}

function readAfter(reader: FileReader, path: SpecPath, value: unknown): readonly string[] {
  if (value === undefined) return [];
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (names.length > stepsMax) reader.wrong(path, value, `at most ${stepsMax} steps`);
  return names.slice(0, stepsMax).flatMap((name, index) => {
    const place = Array.isArray(value) ? [...path, index] : path;
    if (typeof name === 'string') {
      if (names.indexOf(name) === index) return [name];
      reader.contradiction(place, `"${name}" is in the list twice`);
    } else reader.wrong(place, name, 'the name of a step');
    return [];
  });
}

function namedEntries(
  reader: FileReader,
  path: SpecPath,
  value: unknown,
  expected: string,
): readonly (readonly [string, unknown])[] {
  if (value === undefined) return [];
  if (!isMapping(value) || Object.keys(value).length > namesMax) {
    reader.wrong(path, value, `a mapping of at most ${namesMax}, such as ${expected}`);
    return [];
  }
  return Object.entries(value).filter(([name]) => {
    const isName = variableName.test(name);
    if (!isName) reader.contradiction([...path, name], 'is not a valid name', variableForm);
    return isName;
  });
}

function readInputs(reader: FileReader, path: SpecPath, value: unknown): readonly StepInput[] {
  return namedEntries(reader, path, value, '{data: prepare.data}').flatMap(
    ([name, each]): readonly StepInput[] => {
      const [, step, output] = (typeof each === 'string' && outputReference.exec(each)) || [];
      if (step !== undefined && output !== undefined) return [{ name, kind: 'output', step, output }];
      if (typeof each === 'string' && referencesIn(each).some(({ kind }) => kind === 'params'))
        return [{ name, kind: 'text', text: each }];
      // Braces of this text are those of a pipeline file.
      reader.wrong([...path, name], each, `STEP.OUTPUT, or a text with \${params.NAME}`);
      return [];
    },
  );
}

function readOutputs(reader: FileReader, path: SpecPath, value: unknown): readonly StepOutput[] {
  return namedEntries(reader, path, value, '{data: {type: directory}}').flatMap(([name, each]) => {
    const place = [...path, name];
    const file = reader.mapping(place, each, ['path', 'type'], 'an output such as {type: directory}');
    if (file === null) return [];
    if (file['type'] === undefined) reader.wrong([...place, 'type'], undefined, artifactTypes.join(', '));
    const type = reader.word([...place, 'type'], file['type'], artifactTypes, 'directory');
    const written = file['path'] ?? name;
    if (typeof written === 'string' && isPath(written)) return [{ name, type, path: written }];
    reader.wrong(
      [...place, 'path'],
      written,
      'an absolute path, or one below the directory of the step, without ".."',
    );
    return [];
  });
}

function isPath(text: string): boolean {
  const parts = text.split('/');
  const isPlain = text !== '' && text.length <= pathLengthMax && !/\p{Cc}/u.test(text);
  return isPlain && !parts.includes('..') && !parts.includes('.');
}

function readForEach(reader: FileReader, path: SpecPath, value: unknown): PipelineStep['forEach'] {
  if (value === undefined) return null;
  const [, parameter] = (typeof value === 'string' && /^\$\{params\.(\w+)\}$/.exec(value)) || [];
  if (parameter !== undefined) return { parameter };
  const items = valueOfType('list', value);
  if (!Array.isArray(items) || items.length === 0) {
    reader.wrong(path, value, `a list of 1 to ${listLengthMax} values, or \${params.NAME} of a list`);
    return null;
  }
  const values = items as readonly PlainValue[];
  const twice = values.findIndex((each, index) => values.indexOf(each) !== index);
  if (twice !== -1)
    reader.contradiction([...path, twice], `${JSON.stringify(values[twice])} is in the list twice`);
  return values;
}

function readWhen(reader: FileReader, path: SpecPath, value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value.trim() !== '') return value;
  reader.wrong(path, value, `a condition as text, such as "steps.train == 'succeeded'"`);
  return null;
}

function readRetries(reader: FileReader, path: SpecPath, value: unknown): number {
  if (value === undefined) return 0;
  const file = reader.mapping(path, value, ['max'], 'a mapping such as {max: 2}');
  if (file !== null && file['max'] === undefined)
    reader.wrong([...path, 'max'], undefined, 'how many times, such as max: 2');
  return file === null ? 0 : reader.wholeNumber([...path, 'max'], file['max'], [0, 100], 0);
}

function readDuration(reader: FileReader, path: SpecPath, value: unknown): number | null {
  if (value === undefined) return null;
  const ms = typeof value === 'string' || typeof value === 'number' ? parseDurationMs(value) : null;
  if (ms !== null && ms > 0) return ms;
  reader.wrong(path, value, 'a duration above 0, such as 90s, 30m or 24h');
  return null;
}

function readCache(reader: FileReader, path: SpecPath, value: unknown): PipelineStep['cache'] {
  if (value === undefined || value === false) return null;
  if (value === true) return { ttlMs: null };
  const file = reader.mapping(path, value, ['ttl'], 'true, false, or a mapping such as {ttl: 7d}');
  return file === null ? null : { ttlMs: readDuration(reader, [...path, 'ttl'], file['ttl']) };
}
