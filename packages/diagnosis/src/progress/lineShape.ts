/** The shape of a line of metrics: a pattern whose named groups are values, and one for the `name: value` pairs behind it. */
import type { MetricRow } from '../model.ts';
import { numberIn, secondsIn } from './numbers.ts';

export type Values = MetricRow['values'];
export type MutableValues = Record<string, Values[string]>;

/** A name that ends so is printed in milliseconds. It is kept in seconds, without the ending. */
const milliseconds = '$ms';

/** One kind of line that a trainer prints. */
export interface LineShape {
  /**
   * A named group is a value of that name, null where it did not match or is no number. A line whose loss is no number at all is
   * no line of metrics: as null it would be taken for a loss that is not a number. The group `pairs` limits where pairs stand.
   * Without flags; every group has a name or does not capture.
   */
  readonly columns: RegExp;
  /** Global; the first group is a name, the second a value. Searched behind the columns. */
  readonly pairs?: RegExp;
  /** Names of pairs => their names in Muster. */
  readonly keys?: Readonly<Record<string, string>>;
  /** Pairs without a key repeat the configuration or another pair. */
  readonly onlyKeys?: true;
  /** The name of at least one pair; a line without it was printed by somebody else, or measures nothing. */
  readonly needs?: RegExp;
  /** For numbers with a unit of their own. */
  readonly toNumber?: (printed: string) => string;
  readonly constants?: Values;
}

/** @returns a function from a line to its values, null where it has another shape */
export function shapeReader(shape: LineShape): (text: string) => Values | null {
  const { source } = shape.columns;
  const names = Array.from(source.matchAll(groupName), ([, name = '']) => name);
  // A match with named groups costs twice as much as one with numbered groups.
  const columns = new RegExp(source.replace(groupName, '('));
  return (text) => {
    const found = columns.exec(text);
    if (found === null) return null;
    const values: MutableValues = { ...shape.constants };
    let pairsText: string | undefined;
    for (let group = 0; group < names.length; group += 1) {
      const name = names[group] ?? '';
      const printed = found[group + 1];
      if (name === 'pairs') pairsText = printed;
      else if (!put(values, name, printed ?? 'n/a')) {
        if (name.endsWith('loss')) return null;
        values[name] = null;
      }
    }
    if (shape.pairs === undefined) return values;
    return addPairs(values, pairsText ?? text.slice(found.index + found[0].length), shape.pairs, shape);
  };
}

const groupName = /\(\?<([a-z_$]{1,40})>/g;

/** @returns null: none of the pairs has the name that is needed */
export function addPairs(
  values: MutableValues,
  text: string,
  pattern: RegExp,
  { keys, onlyKeys, needs, toNumber }: Omit<LineShape, 'columns'> = {},
): Values | null {
  let isComplete = needs === undefined;
  pattern.lastIndex = 0;
  for (let pair = pattern.exec(text); pair !== null; pair = pattern.exec(text)) {
    const name = (pair[1] ?? '').trim();
    const key = keys !== undefined && Object.hasOwn(keys, name) ? keys[name] : undefined;
    if (key === undefined && onlyKeys === true) continue;
    const shown = (pair[2] ?? '').trim();
    const isQuoted = shown.startsWith("'");
    const printed = isQuoted ? shown.slice(1, -1) : shown;
    if (put(values, key ?? name, toNumber === undefined ? printed : toNumber(printed)))
      isComplete ||= needs?.test(name) === true;
    else if (isQuoted) values[name] = printed;
  }
  return isComplete ? values : null;
}

/** @returns whether it is a number, or stands for a value that is not a number */
export function put(values: MutableValues, name: string, printed: string): boolean {
  const inMs = name.endsWith(milliseconds);
  const value = inMs ? secondsIn(printed) : numberIn(printed);
  if (value === undefined) return false;
  values[inMs ? name.slice(0, -milliseconds.length) : name] = value;
  return true;
}
