/** The early stopping of a sweep file. */
import type { StoppingRule } from '../stopping/rules.ts';
import type { FileMapping, FileReader } from './findings.ts';

const positionMax = Number.MAX_SAFE_INTEGER;
const trialsMax = 10_000;
const path = ['early_stopping'];
const keys = [
  'rule',
  'min_steps',
  'max_steps',
  'min_epochs',
  'max_epochs',
  'reduction',
  'min_trials',
] as const;

/** @returns null: every trial runs to its end */
export function readStopping(reader: FileReader, value: unknown): StoppingRule | null {
  if (value === undefined) return null;
  const form = 'a mapping such as {rule: asha, min_steps: 100}';
  const file = reader.mapping(path, value, keys, form);
  if (file === null) return null;
  const kind = reader.word([...path, 'rule'], file['rule'], ['median', 'asha', 'hyperband'], 'asha');
  if (file['rule'] === undefined) reader.wrong([...path, 'rule'], undefined, 'median, asha, hyperband');
  const unit = readUnit(reader, file);
  const min = readPosition(reader, file, `min_${unit}`, 0) ?? 1;
  if (file[`min_${unit}`] === undefined)
    reader.wrong(
      [...path, 'min_steps'],
      undefined,
      'the step before which no trial is stopped, or min_epochs',
    );
  const unused = kind === 'median' ? [`max_${unit}`, 'reduction'] : ['min_trials'];
  if (kind === 'asha') unused.push(`max_${unit}`);
  for (const key of unused)
    if (file[key] !== undefined) reader.contradiction([...path, key], `means nothing to the rule ${kind}`);
  if (kind === 'median') {
    const minTrials = reader.wholeNumber([...path, 'min_trials'], file['min_trials'], [1, trialsMax], 5);
    return { kind, unit, min, minTrials };
  }
  const reduction = reader.wholeNumber([...path, 'reduction'], file['reduction'], [2, 100], 3);
  if (kind === 'asha') return { kind, unit, min, reduction };
  const max = readPosition(reader, file, `max_${unit}`, min) ?? min;
  if (file[`max_${unit}`] === undefined)
    reader.wrong(
      [...path, `max_${unit}`],
      undefined,
      `the ${unit === 'steps' ? 'step' : 'epoch'} at which trials end`,
    );
  return { kind, unit, min, max, reduction };
}

/** Rungs are by step unless the file names an epoch; one rule has one of the two. */
function readUnit(reader: FileReader, file: FileMapping): StoppingRule['unit'] {
  const named = ['min_epochs', 'max_epochs'].some((key) => file[key] !== undefined);
  if (!named) return 'steps';
  for (const key of ['min_steps', 'max_steps'])
    if (file[key] !== undefined) reader.contradiction([...path, key], 'steps and epochs exclude each other');
  return 'epochs';
}

/** A part of an epoch is one as well. */
function readPosition(
  reader: FileReader,
  file: FileMapping,
  key: `${'min' | 'max'}_${StoppingRule['unit']}`,
  least: number,
): number | null {
  const value = file[key];
  if (value === undefined) return null;
  if (key.endsWith('_steps'))
    return reader.wholeNumber([...path, key], value, [Math.max(1, least), positionMax], null);
  if (typeof value === 'number' && value > 0 && value >= least && value <= positionMax) return value;
  reader.wrong([...path, key], value, least === 0 ? 'epochs, more than 0' : `epochs, at least ${least}`);
  return null;
}

export function stoppingToFile(rule: StoppingRule): Readonly<Record<string, unknown>> {
  const { kind, unit, min } = rule;
  const common = { rule: kind, [`min_${unit}`]: min };
  if (kind === 'median') return { ...common, min_trials: rule.minTrials };
  if (kind === 'asha') return { ...common, reduction: rule.reduction };
  return { ...common, [`max_${unit}`]: rule.max, reduction: rule.reduction };
}
