/** `--set key=value` of `muster requeue`: changes of a spec, by the keys of the job file. Pure. */
import { isMapping } from '@muster/common/spec/path';

export interface SpecChange {
  /** As in the job file: `resources`, `gpus`. */
  readonly path: readonly string[];
  /** undefined: the key is removed. */
  readonly value: unknown;
}

/** Below these the rest of a key is one name, dots and all. */
const freeMaps: readonly string[] = ['env', 'labels', 'params'];

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
  const path = freeMaps.includes(first) && rest.length > 0 ? [first, rest.join('.')] : [first, ...rest];
  return path.some((part) => part === '') ? null : { path, value: valueOf(first, text) };
}

/**
 * Variables and labels are text. All else is a number, true, false, null, a JSON list or mapping, or text.
 * What begins like a list and is not JSON is no text, because a shell would get it as its command.
 */
function valueOf(first: string, text: string): unknown {
  if (first === 'env' || first === 'labels') return text;
  if (text === '' || text === 'null') return undefined;
  if (/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (!/^(?:true|false|[[{"].*)$/s.test(text)) return text;
  return JSON.parse(text);
}

/** A copy with one value changed. What is no mapping where one belongs stays, for the checks to report. */
export function withChange(spec: unknown, { path, value }: SpecChange): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const mapping = spec === undefined ? {} : spec;
  if (!isMapping(mapping)) return spec;
  const inner = Object.hasOwn(mapping, key) ? mapping[key] : undefined;
  const changed = withChange(inner, { path: rest, value });
  if (changed !== undefined) return { ...mapping, [key]: changed };
  return Object.fromEntries(Object.entries(mapping).filter(([other]) => other !== key));
}
