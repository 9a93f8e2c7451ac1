/**
 * The file of `--config`: the flags of a daemon as keys of a YAML mapping. `--log-budget 50G` is `log_budget: 50G`. The keys are
 * made from the command's own flags and their values are read by the same parsers, so that both have one schema.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { closest } from '@muster/common/spec/suggest';
import type { Command, Option } from 'commander';
import { isMap, isScalar, isSeq, LineCounter, type Pair, parseDocument, type Scalar } from 'yaml';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, fileErrorReason, usageError } from '../errors.ts';
import { advertisedHosts, collect, priceList } from '../flags.ts';

/** Far more than all keys with long lists; bounds what a wrong path can cost. */
const fileBytesMax = 256 * 1024;

export interface Setting {
  readonly key: string;
  readonly option: Option;
  /** As the flag takes them: one, unless the flag may be repeated. */
  readonly values: readonly string[];
}

type SettingsResult =
  | { readonly ok: true; readonly settings: readonly Setting[] }
  /** Sentences, with line numbers. */
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Puts the settings of the file that `--config` names before the words of a command line. A flag that was typed replaces the
 * same key of the file, also where the flag may be repeated.
 * @throws {CliError} when the file cannot be read, with every problem in it
 */
export async function withConfigFile(
  words: readonly string[],
  command: Command,
  { workingDir }: Pick<ProgramEnvironment, 'workingDir'>,
): Promise<readonly string[]> {
  const path = configPath(words);
  if (path === null) return words;
  const typed = new Set(words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0]));
  const settings = readConfigFile(resolve(workingDir, path), command);
  const [name = '', ...rest] = words;
  return [name, ...asWords(settings.filter(({ option }) => !typed.has(option.long ?? ''))), ...rest];
}

/** What `--config` names in a command line, the last one if there are several; null: nothing. */
export function configPath(words: readonly string[]): string | null {
  return words.reduce<string | null>((found, word, index) => {
    if (word === '--config') return words[index + 1] ?? found;
    return word.startsWith('--config=') ? word.slice('--config='.length) : found;
  }, null);
}

/** A command line that means the same. */
export function asWords(settings: readonly Setting[]): readonly string[] {
  return settings.flatMap(({ option, values }) => {
    const { long } = option;
    if (long === undefined || long === null) return [];
    if (takesNoValue(option)) return values[0] === 'true' ? [long] : [];
    return values.map((value) => `${long}=${value}`);
  });
}

/**
 * @param path absolute
 * @throws {CliError} when it cannot be read, with every problem in it
 */
export function readConfigFile(path: string, command: Command): readonly Setting[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new CliError(`cannot read ${path}: ${fileErrorReason(error) ?? messageOf(error)}`, {
      code: 'invalid',
      cause: error,
    });
  }
  const result = parseConfig(text, command);
  if (result.ok) return result.settings;
  throw usageError(`${path} is not valid`, ...result.problems, `Every key: muster ${command.name()} --help`);
}

/** Never throws: whatever is wrong comes back as problems, all of them at once. */
export function parseConfig(text: string, command: Command): SettingsResult {
  if (Buffer.byteLength(text) > fileBytesMax)
    return { ok: false, problems: [`larger than ${fileBytesMax / 1024} KB`] };
  const lines = new LineCounter();
  // Values are text for the parsers of the flags, and not yet numbers and truths: `0x10` or `1e3` is none of their forms.
  const document = parseDocument(text, { schema: 'failsafe', lineCounter: lines, uniqueKeys: true });
  const lineOf = (offset: number) => lines.linePos(offset).line;
  if (document.errors.length > 0) {
    const problems = document.errors.map(
      ({ message, pos }) => `line ${lineOf(pos[0])}: ${message.split(/ at line |\n/)[0]}`,
    );
    return { ok: false, problems };
  }
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === '')) return { ok: true, settings: [] };
  if (!isMap(contents)) return { ok: false, problems: ['line 1: keys with values are expected'] };
  const known = configKeys(command);
  const settings: Setting[] = [];
  const problems: string[] = [];
  for (const pair of contents.items) {
    const offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0;
    const read = settingOf(pair, known);
    if (typeof read === 'string') problems.push(`line ${lineOf(offset)}: ${read}`);
    else settings.push(read);
  }
  return problems.length === 0 ? { ok: true, settings } : { ok: false, problems };
}

/** The flags that a file may hold, by their keys. */
export function configKeys(command: Command): ReadonlyMap<string, Option> {
  const inFile = command.options.filter(
    ({ long, hidden }) => Boolean(long) && long !== '--config' && !hidden,
  );
  return new Map(inFile.map((option) => [keyOf(option), option]));
}

function keyOf({ long }: Option): string {
  return (long ?? '').replace(/^--/, '').replaceAll('-', '_');
}

/** @returns a sentence: what is wrong with it */
function settingOf({ key, value }: Pair, known: ReadonlyMap<string, Option>): Setting | string {
  const name = isText(key) ? key.value : '';
  const option = known.get(name);
  if (option === undefined) {
    const meant = closest(name, [...known.keys()]);
    return `unknown key "${name}"${meant === null ? '' : `; did you mean ${meant}?`}`;
  }
  const values = takesPairs(option) ? (pairsOf(value) ?? textsOf(value)) : textsOf(value);
  if (values === null) return `${name} takes a value${repeats(option) ? ' or a list of values' : ''}`;
  if (values.length !== 1 && !repeats(option)) return `${name} takes one value, not a list`;
  if (values.includes('')) return `${name} has no value; leave the line out for the default`;
  if (takesNoValue(option) && !/^(?:true|false)$/.test(values[0] ?? ''))
    return `${name} takes true or false; got "${values[0]}"`;
  const problem = valueProblem(option, values);
  return problem === null ? { key: name, option, values } : problem;
}

/** null: it is neither a value nor a list of values. */
function textsOf(value: unknown): readonly string[] | null {
  if (value === null) return [''];
  if (!isSeq(value)) return isText(value) ? [value.value] : null;
  const texts = value.items.filter(isText);
  return texts.length === value.items.length ? texts.map((text) => text.value) : null;
}

/** `H100: 8.00` as `H100=8.00`; null: it is no mapping of one text to another. */
function pairsOf(value: unknown): readonly string[] | null {
  if (!isMap(value)) return null;
  const texts = value.items.flatMap((pair) =>
    isText(pair.key) && isText(pair.value) ? [`${pair.key.value}=${pair.value.value}`] : [],
  );
  return texts.length === value.items.length ? texts : null;
}

/** In this schema each scalar is a text. */
function isText(node: unknown): node is Scalar<string> {
  return isScalar(node) && typeof node.value === 'string';
}

/** As the flag's own parser puts it, with the key instead of the flag; null: the parser takes them. */
function valueProblem(option: Option, values: readonly string[]): string | null {
  if (option.parseArg === undefined || takesNoValue(option)) return null;
  try {
    let sofar: unknown;
    for (const value of values) sofar = option.parseArg(value, sofar);
    return null;
  } catch (error) {
    const { message } = error as Error;
    const key = keyOf(option);
    const ofFlag = message.startsWith(option.long ?? '-');
    return ofFlag ? `${key}${message.slice(option.long?.length)}` : `${key}: ${firstSmall(message)}`;
  }
}

/** Commander's own words for a value that is none of the choices begin a sentence. */
function firstSmall(message: string): string {
  return `${message.charAt(0).toLowerCase()}${message.slice(1)}`.replace(/\.$/, '');
}

function takesNoValue({ required, optional }: Option): boolean {
  return !required && !optional;
}

/** Whether it may be a mapping as well: a table of prices reads better so. */
function takesPairs({ parseArg }: Option): boolean {
  return parseArg === priceList;
}

function repeats({ parseArg }: Option): boolean {
  return parseArg === collect || parseArg === advertisedHosts || parseArg === priceList;
}
