/** The flags of `muster submit`, laid over the content of the file. Pure; flags are kept as typed and checked by the schema. */
import { type SpecPlace, specPlaces } from './fields.ts';
import { type AnyField, shownDefault } from './kinds.ts';
import { isMapping, quote, type SpecPath, valueAt, withValueAt } from './path.ts';
import type { Finding, PlacedFinding } from './problems.ts';

/**
 * Flag values as typed, by the names that the parser of the command line gives them: `gpuType` for `--gpu-type`. undefined: not
 * given. Other names have no effect here. Those below are read by name elsewhere too.
 */
export interface SpecOverrides {
  readonly [flag: string]: unknown;
  readonly image?: string | undefined;
  readonly workdir?: string | undefined;
  readonly umask?: string | undefined;
  /** `NAME=VALUE`, or `NAME` to copy from the caller's environment. */
  readonly env?: readonly string[] | undefined;
  /** argv after `--`; replaces command and args of the file. */
  readonly command?: readonly string[] | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Merged {
  /** In the shape of the job file, not yet checked. */
  readonly value: unknown;
  /** Flags that cannot be laid over anything. */
  readonly findings: readonly PlacedFinding[];
  /** The flag that set the value at a path, or null. */
  flagOf(path: SpecPath): string | null;
}

export interface SpecFlag extends SpecPlace {
  /** As the help shows it: `-e, --env <name=value>`. */
  readonly usage: string;
  readonly long: string;
  /** Its name in `SpecOverrides`. */
  readonly name: string;
  /** One line, with the default. */
  readonly help: string;
  readonly isRepeated: boolean;
}

/** The flags of `muster submit` that describe the job, in the order of the table. */
export const specFlags: readonly SpecFlag[] = specPlaces.flatMap(({ path, field }) => {
  if (field.flag === undefined) return [];
  const long = /--[a-z-]+/.exec(field.flag)?.[0] ?? '';
  const name = long.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  const isRepeated = ['list', 'append', 'pairs'].includes(field.flagForm ?? 'text');
  return [{ path, field, usage: field.flag, long, name, help: helpOf(field, isRepeated), isRepeated }];
});

function helpOf(field: AnyField, isRepeated: boolean): string {
  const text = field.help ?? sentencePart(field.about);
  const preset = field.flagForm === 'switch' ? undefined : shownDefault(field);
  const written = field.isText ? JSON.stringify(preset) : String(preset);
  return `${text}${preset === undefined ? '' : `; default ${written}`}${isRepeated ? '; may be repeated' : ''}`;
}

/** `The first signal.` → `the first signal`; `GPUs` stays. */
function sentencePart(sentence: string): string {
  const text = sentence.replace(/\.$/, '').replace('. Default: ', '; default: ');
  return /^[A-Z][a-z]+\b/.test(text) ? `${text.charAt(0).toLowerCase()}${text.slice(1)}` : text;
}

/** @param value content of the file, `{}` without a file; it is not changed */
export function applyOverrides(value: unknown, overrides: SpecOverrides, environment: Environment): Merged {
  const merge = new Merge(value);
  for (const flag of specFlags) {
    const typed = overrides[flag.name];
    if (typed !== undefined) layOver(merge, flag, typed, environment);
  }
  if (overrides.command !== undefined) {
    merge.remove('args');
    merge.set(['command'], overrides.command, '--');
  }
  return merge;
}

function layOver(
  merge: Merge,
  { path, field, long }: SpecFlag,
  typed: unknown,
  environment: Environment,
): void {
  switch (field.flagForm) {
    case 'pairs':
      for (const pair of typed as readonly string[]) addPair(merge, { path, field, long }, pair, environment);
      break;
    case 'append':
      for (const item of typed as readonly string[]) merge.append(path, item, long);
      break;
    case 'switch':
      // What the file sets beside it stays.
      if (field.fields === undefined || !isMapping(valueAt(merge.value, path))) merge.set(path, true, long);
      break;
    case 'list':
      merge.set(path, typed, long);
      break;
    case 'text':
    case undefined: {
      const reading = field.readFlag?.(typed as string) ?? { value: typed };
      // A value that is refused is set anyway: other checks must not take the setting for absent.
      merge.set(path, 'value' in reading ? reading.value : reading.got, long);
      if ('got' in reading) merge.refuse(path, long, `got ${quote(reading.got, 60)}`, reading.expected);
    }
  }
}

/** `NAME=VALUE`; of variables also `NAME`, which copies the caller's. */
function addPair(
  merge: Merge,
  { path, field, long }: Pick<SpecFlag, 'path' | 'field' | 'long'>,
  pair: string,
  environment: Environment,
): void {
  const { name, text } = splitPair(pair);
  const isCopied = field.isCopiedByName === true;
  const value = text ?? (isCopied ? environment[name] : undefined);
  if (name === '' || (value === undefined && !isCopied)) {
    const expected = isCopied ? 'NAME=VALUE or NAME' : 'NAME=VALUE';
    merge.refuse(path, long, `got ${quote(pair, 60)}`, expected);
  } else if (value === undefined) {
    const flag = `${long} ${name}`;
    merge.refuse([...path, name], flag, 'not set in your environment', `${flag}=VALUE`);
  } else {
    const reading = field.readFlag?.(value) ?? { value };
    merge.set([...path, name], 'value' in reading ? reading.value : value, `${long} ${name}`);
  }
}

function splitPair(pair: string): { readonly name: string; readonly text: string | null } {
  const equals = pair.indexOf('=');
  return equals < 0
    ? { name: pair, text: null }
    : { name: pair.slice(0, equals), text: pair.slice(equals + 1) };
}

class Merge implements Merged {
  value: unknown;
  readonly findings: PlacedFinding[] = [];
  private readonly flags = new Map<string, string>();

  constructor(value: unknown) {
    this.value = value;
  }

  set(path: SpecPath, value: unknown, flag: string): void {
    this.value = withValueAt(this.value, path, value);
    this.flags.set(JSON.stringify(path), flag);
  }

  append(path: SpecPath, item: string, flag: string): void {
    const present = valueAt(this.value, path);
    if (present === undefined) this.set(path, [item], flag);
    else if (Array.isArray(present)) {
      this.value = withValueAt(this.value, path, [...present, item]);
      this.flags.set(JSON.stringify([...path, present.length]), flag);
    }
  }

  remove(key: string): void {
    this.value = withValueAt(this.value, [key], undefined);
  }

  refuse(path: SpecPath, flag: string, message: string, expected: string): void {
    const finding: Finding = { path, at: 'value', message, expected, suggestion: null };
    this.findings.push({ finding, origin: { line: null, column: null, flag } });
  }

  flagOf(path: SpecPath): string | null {
    const flag = this.flags.get(JSON.stringify(path));
    if (flag !== undefined) return flag;
    return path.length === 0 ? null : this.flagOf(path.slice(0, -1));
  }
}
