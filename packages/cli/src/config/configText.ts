/** The text of a configuration file: written with every key explained, and changed without losing what its owner wrote. Pure. */
import type { Command, Option } from 'commander';
import { parseDocument } from 'yaml';
import { configKeys } from './configFile.ts';

const lineWidth = 110;

/**
 * A file in which every key is explained. Those that are set come first, the others are comments that show their form.
 * @param set values by key
 */
export function newConfigText(
  command: Command,
  introduction: readonly string[],
  set: ReadonlyMap<string, readonly string[]>,
): string {
  const entries = [...configKeys(command)].map(([key, option]) => {
    const values = set.get(key);
    const line = values === undefined ? `#${key}: ${formOf(option)}` : lineOf(key, values);
    return { key, isSet: values !== undefined, text: [...commentOf(option), line].join('\n') };
  });
  // An unknown key is refused with the others, when the text is read.
  const unknown = [...set].filter(([key]) => !entries.some((entry) => entry.key === key));
  const ordered = [...entries.filter(({ isSet }) => isSet), ...entries.filter(({ isSet }) => !isSet)];
  const head = introduction.map((line) => `# ${line}`).join('\n');
  return `${[head, ...ordered.map(({ text }) => text), ...unknown.map((each) => lineOf(...each))].join('\n\n')}\n`;
}

/** The same text with other values of these keys; every other line stays as it is. */
export function withSettings(text: string, set: ReadonlyMap<string, readonly string[]>): string {
  return [...set].reduce((sofar, [key, values]) => withSetting(sofar, key, values), text);
}

function withSetting(text: string, key: string, values: readonly string[]): string {
  const line = lineOf(key, values);
  const span = spanOf(text, key);
  if (span !== null) return `${text.slice(0, span.start)}${line}${text.slice(span.end)}`;
  // Where the key is explained.
  const explained = new RegExp(`^#${key}:.*$`, 'm');
  if (explained.test(text)) return text.replace(explained, () => line);
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`;
}

/** Where a key and its value stand, without a comment behind them; null: the key is not set. */
function spanOf(text: string, key: string): { readonly start: number; readonly end: number } | null {
  const { contents } = parseDocument(text, { schema: 'failsafe' });
  const items = contents !== null && 'items' in contents ? contents.items : [];
  for (const item of items) {
    const [name, value] = 'key' in item ? [item.key, item.value] : [null, null];
    if (!hasRange(name) || name.value !== key) continue;
    const end = hasRange(value) ? value.range[1] : name.range[1];
    return { start: name.range[0], end: Math.max(end, name.range[1]) };
  }
  return null;
}

interface Ranged {
  readonly value?: unknown;
  readonly range: readonly [number, number, number];
}

function hasRange(node: unknown): node is Ranged {
  return typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range);
}

function lineOf(key: string, values: readonly string[]): string {
  const [only = ''] = values;
  return `${key}: ${values.length === 1 ? scalar(only) : `[${values.map(scalar).join(', ')}]`}`;
}

/** Quoted where YAML would read something else. */
function scalar(value: string): string {
  return /^[\w/.][\w/.:@%+=-]*$/.test(value) && !value.endsWith(':') ? value : JSON.stringify(value);
}

function formOf({ flags, required, optional }: Option): string {
  return required || optional ? (/<(.*)>/.exec(flags)?.[1] ?? 'value') : 'true';
}

function commentOf({ description }: Option): readonly string[] {
  const lines: string[] = [];
  for (const word of description.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < lineWidth) lines.splice(-1, 1, `${last} ${word}`);
    else lines.push(`# ${word}`);
  }
  return lines;
}
