/** `warm_start` of a sweep file: names of earlier sweeps, and trials that are known. */
import { isMapping } from '@muster/common/spec/path';
import type { Parameter, ParameterValue, Point } from '../space.ts';
import { fitsSpace, type KnownTrial, knownTrialsMax } from '../warmStart.ts';
import type { FileReader } from './findings.ts';

export interface WarmStart {
  /** Sweeps whose trials are taken over when the sweep is created. */
  readonly sweeps: readonly string[];
  readonly trials: readonly KnownTrial[];
}

const sweepsMax = 20;
const form = 'a list of sweeps, by id or name, and of known trials, such as {params: {lr: 0.01}, value: 0.3}';

export function readWarmStart(
  reader: FileReader,
  value: unknown,
  sampler: string,
  parameters: readonly Parameter[],
): WarmStart {
  const nothing = { sweeps: [], trials: [] };
  if (value === undefined) return nothing;
  const path = ['warm_start'];
  if (!Array.isArray(value) || value.length > sweepsMax + knownTrialsMax) {
    reader.wrong(path, value, form);
    return nothing;
  }
  if (sampler !== 'tpe' && value.length > 0)
    reader.contradiction(path, `means nothing to the sampler ${sampler}`, 'sampler: tpe');
  const sweeps: string[] = [];
  const trials: KnownTrial[] = [];
  for (const [index, each] of (value as readonly unknown[]).entries()) {
    if (typeof each === 'string' && each !== '' && each.length <= 128) {
      sweeps.push(each);
      continue;
    }
    const trial = isMapping(each) ? readTrial(reader, [...path, index], each, parameters) : null;
    if (trial !== null) trials.push(trial);
    else if (!isMapping(each)) reader.wrong([...path, index], each, form);
  }
  if (sweeps.length > sweepsMax)
    reader.contradiction(path, `${sweeps.length} sweeps`, `at most ${sweepsMax}`);
  if (trials.length > knownTrialsMax)
    reader.contradiction(path, `${trials.length} known trials`, `at most ${knownTrialsMax}`);
  return { sweeps, trials };
}

function readTrial(
  reader: FileReader,
  path: readonly (string | number)[],
  given: Readonly<Record<string, unknown>>,
  parameters: readonly Parameter[],
): KnownTrial | null {
  reader.mapping(path, given, ['params', 'value'], form);
  const { params, value = null } = given;
  if (value !== null && !(typeof value === 'number' && Number.isFinite(value))) {
    reader.wrong([...path, 'value'], value, 'a number; or none, for parameters that do not work');
    return null;
  }
  if (!isMapping(params) || !isPoint(params) || !fitsSpace(parameters, params)) {
    reader.wrong(
      [...path, 'params'],
      params,
      'a value of each parameter that applies, as the sweep may choose it',
    );
    return null;
  }
  return { params, value };
}

function isPoint(params: Readonly<Record<string, unknown>>): params is Point {
  const isValue = (value: unknown): value is ParameterValue =>
    ['number', 'string', 'boolean'].includes(typeof value);
  return Object.values(params).every(isValue);
}

export function warmStartToFile({ sweeps, trials }: WarmStart): Readonly<Record<string, unknown>> {
  if (sweeps.length === 0 && trials.length === 0) return {};
  const known = trials.map(({ params, value }) => (value === null ? { params } : { params, value }));
  return { warm_start: [...sweeps, ...known] };
}
