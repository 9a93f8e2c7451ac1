/**
 * fairseq: `… | INFO | train_inner | …` with a JSON object whose numbers are strings, or with `key=value` (within an epoch)
 * and ` | key value` (at its end, and after a validation).
 */
import { type LineFormat, numberIn, type Values } from '../format.ts';
import { objectIn, valueIn } from '../jsonObject.ts';

const head = /\| INFO \| (train_inner|train|valid) \| /;
const epoch = /\bepoch (\d{1,9})\b/;
const pair = /(?<![\w./-])([A-Za-z_][\w./-]{0,80})=([-+.\w]{1,40})(?=,|\s|$)/g;
const barred = /\| ([A-Za-z_][\w./-]{0,80}) ([-+.\w]{1,40}) ?(?=\||$)/g;

/** Losses of an epoch or of a validation are told apart in JSON and not in plain text; here they are in both. */
const prefixes: ReadonlyMap<string, string> = new Map([
  ['train', 'train_'],
  ['valid', 'valid_'],
]);

export const fairseq: LineFormat = {
  framework: 'fairseq',
  marks: ['| INFO | '],
  read(text) {
    const found = head.exec(text);
    if (found === null) return null;
    const told = text.slice(found.index + found[0].length);
    const values = told.startsWith('{')
      ? numbersOf(objectIn(told))
      : simple(told, prefixes.get(found[1] ?? '') ?? '');
    return values !== null && isTelling(values) ? values : null;
  },
};

function isTelling(values: Values): boolean {
  return 'num_updates' in values || Object.keys(values).some((key) => key.endsWith('loss'));
}

function numbersOf(object: Readonly<Record<string, unknown>> | null): Values | null {
  if (object === null) return null;
  const values: Record<string, Values[string]> = {};
  for (const [key, told] of Object.entries(object)) {
    const value = valueIn(told);
    if (value !== undefined) values[key] = value;
  }
  return values;
}

function simple(told: string, prefix: string): Values {
  const values: Record<string, Values[string]> = {};
  const counted = epoch.exec(told);
  if (counted !== null) values['epoch'] = Number(counted[1]);
  for (const pattern of [pair, barred]) {
    for (let part = pattern.exec(told); part !== null; part = pattern.exec(told)) {
      const [, key = '', printed = ''] = part;
      const value = numberIn(printed);
      if (value !== undefined) values[prefix + key] = value;
    }
  }
  return values;
}
