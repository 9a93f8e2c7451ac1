/** Messages of alerts: texts with names of values in braces. Pure. */
import { formatDuration } from '@muster/common/spec/duration';
import { closest } from '@muster/common/spec/suggest';
import type { FactOf, FactValue, KnownName } from './names.ts';

const placeholder = /\{([^{}]*)\}/g;

/** Characters of one value, so that a long one leaves room for the others. */
const valueLengthMax = 200;
const unknownText = 'unknown';

/**
 * @param names what it may use; `labels.team` is a label of a job
 * @returns what is wrong with the first placeholder that is; null: nothing
 */
export function messageProblem(text: string, names: Readonly<Record<string, KnownName>>): string | null {
  for (const [whole, written = ''] of text.matchAll(placeholder)) {
    const [name = '', ...field] = written.split('.');
    const known = Object.hasOwn(names, name) ? names[name] : undefined;
    const hasFields = known?.type === 'map(string, string)';
    if (known !== undefined && hasFields === field.length > 0) continue;
    if (hasFields) return `${whole}: name a label, such as {labels.team}`;
    const meant = closest(written, Object.keys(names));
    return `unknown placeholder ${whole.slice(0, 60)}; ${
      meant === null ? `known are ${Object.keys(names).join(', ')}` : `did you mean {${meant}}?`
    }`;
  }
  return null;
}

/** A value that is not known is shown as unknown. */
export function messageText(
  text: string,
  factOf: FactOf,
  names: Readonly<Record<string, KnownName>>,
): string {
  return text.replaceAll(placeholder, (_whole, written: string) => {
    const [name = '', ...field] = written.split('.');
    const value = factOf(name);
    if (field.length === 0) return valueText(value, names[name]?.type);
    const label = typeof value === 'object' && value !== null ? labelOf(value, field.join('.')) : null;
    return valueText(label, 'string');
  });
}

function labelOf(value: object, name: string): string | null {
  const found: unknown = Object.hasOwn(value, name) ? Reflect.get(value, name) : null;
  return typeof found === 'string' ? found : null;
}

function valueText(value: FactValue, type: KnownName['type'] | undefined): string {
  if (value === null) return unknownText;
  if (typeof value === 'number')
    return type === 'duration'
      ? formatDuration(Math.max(0, Math.round(value / 1_000) * 1_000))
      : String(Number(value.toPrecision(6)));
  if (typeof value === 'object') return Object.values(value).join(', ').slice(0, valueLengthMax);
  return String(value).slice(0, valueLengthMax);
}
