/** `--set key=value` of `muster requeue`: changes of a spec, by the keys of the job file. Pure. */
import { freeMaps } from '@muster/common/spec/fields';

export interface SpecChange {
  /** As in the job file: `resources`, `gpus`. */
  readonly path: readonly string[];
  /** undefined: the key is removed. */
  readonly value: unknown;
}

/**
 * @returns null: it has no key, or no "="
 * @throws {SyntaxError} its value begins like a list, a mapping or a quoted text, and is not JSON
 */
export function parseChange(typed: string): SpecChange | null {
  const equals = typed.indexOf('=');
  const key = typed.slice(0, Math.max(0, equals)).trim();
  if (key === '') return null;
  const text = typed.slice(equals + 1);
  const [first = '', ...rest] = key.split('.');
  // Below a map whose names are the user's, the rest is one name, dots and all.
  const path = freeMaps.has(first) && rest.length > 0 ? [first, rest.join('.')] : [first, ...rest];
  return path.some((part) => part === '') ? null : { path, value: valueOf(first, text) };
}

/**
 * Variables and labels are text. All else is a number, true, false, null, a JSON list or mapping, or text.
 * What begins like a list and is not JSON is no text, because a shell would get it as its command.
 */
function valueOf(first: string, text: string): unknown {
  if (freeMaps.get(first)?.isText) return text;
  if (text === '' || text === 'null') return undefined;
  if (/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (!/^(?:true|false|[[{"].*)$/s.test(text)) return text;
  return JSON.parse(text);
}
