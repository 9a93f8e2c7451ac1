/** Fills in `${params.NAME}`, `${inputs.NAME}`, `${outputs.NAME}` and `${item}`. Every other `$` is left to the shell. Pure. */
import { isMapping, type SpecPath } from '@muster/common/spec/path';
import type { PipelineValue, PlainValue } from './model.ts';

const reference = /\$\{(?:(params|inputs|outputs)\.([^}]*)|(item))\}/g;
const wholeReference = /^\$\{(?:(params|inputs|outputs)\.([^}]*)|(item))\}$/;

/** `params.lr`, or `item`. */
export interface Reference {
  readonly kind: 'params' | 'inputs' | 'outputs' | 'item';
  readonly name: string;
  /** Where it stands. */
  readonly path: SpecPath;
}

export interface StepValues {
  readonly params: Readonly<Record<string, PipelineValue>>;
  /** A list: one for each item of a step with `for_each`. */
  readonly inputs: Readonly<Record<string, string | readonly string[]>>;
  readonly outputs: Readonly<Record<string, string>>;
  /** null: the step has no `for_each`. */
  readonly item: PlainValue | null;
}

/** Every reference in the texts of a value. Keys of mappings are not texts. */
export function referencesIn(value: unknown, path: SpecPath = []): readonly Reference[] {
  if (typeof value === 'string')
    return Array.from(value.matchAll(reference), ([, kind, name, item]) => ({
      kind: item === undefined ? (kind as Reference['kind']) : 'item',
      name: name ?? '',
      path,
    }));
  if (Array.isArray(value)) return value.flatMap((each, index) => referencesIn(each, [...path, index]));
  if (!isMapping(value)) return [];
  return Object.entries(value).flatMap(([key, each]) => referencesIn(each, [...path, key]));
}

/** A text as what stands between its references, and the references. Joined again it is the same text. */
export function partsOf(text: string): readonly (string | Reference)[] {
  const parts: (string | Reference)[] = [];
  let end = 0;
  for (const match of text.matchAll(reference)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push(...referencesIn(match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/**
 * A text that is one reference and nothing else becomes the value with its type, and in a list each of its values. In other texts
 * lists are joined by a space. What is not known stays as it is.
 */
export function substitute(value: unknown, values: StepValues): unknown {
  if (typeof value === 'string') {
    const whole = wholeReference.exec(value);
    if (whole !== null) return valueOf(whole, values) ?? value;
    return value.replaceAll(reference, (text: string, kind?: string, name?: string, item?: string) => {
      const found = valueOf([text, kind, name, item], values);
      if (found === null) return text;
      return Array.isArray(found) ? found.join(' ') : String(found);
    });
  }
  if (Array.isArray(value))
    return value.flatMap((each: unknown) => {
      const filled = substitute(each, values);
      return typeof each === 'string' && Array.isArray(filled) ? (filled as unknown[]) : [filled];
    });
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, substitute(each, values)]));
}

function valueOf(
  [, kind, name = '', item]: readonly (string | undefined)[],
  values: StepValues,
): PipelineValue | null {
  if (item !== undefined) return values.item;
  const known = kind === 'params' || kind === 'inputs' || kind === 'outputs' ? values[kind] : {};
  return Object.hasOwn(known, name) ? (known[name] ?? null) : null;
}
