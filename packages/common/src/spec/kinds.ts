/**
 * The kinds of settings that a job file has: how a value is checked, read, written again, and given as a flag. The table in
 * `fields.ts` is made of them.
 *
 * zod checks job files, and is an argument here: a program that only reads checked specs (the agent) has no memory to spare for it.
 */
import type * as zod from 'zod';
import { durationPattern, formatDuration, parseDurationMs, suggestDuration } from './duration.ts';
import { argumentBytesMax } from './limits.ts';
import { isMapping } from './path.ts';
import { parseSizeMb, sizeForm } from './size.ts';

export type Zod = typeof zod;

type Mapping = Readonly<Record<string, unknown>>;

/** What a flag's text stands for in the job file. */
export type FlagReading = { readonly value: unknown } | { readonly got: string; readonly expected: string };

/** How a value of the job file is checked, read and written. `Written` is what users write, `Value` what Muster works with. */
export interface ValueKind<Value, Written> {
  /** Checks and changes nothing. Its error texts name what was expected. */
  readonly check: (z: Zod) => zod.ZodType;
  /** What is expected, for the documentation. */
  readonly form: string;
  /**
   * @param written has passed the check
   * @param file the mapping that holds it
   * @throws {TypeError} it has not passed the check
   */
  read(written: Written, file: Mapping): Value;
  write(value: Value): Written;
  /** A number or boolean in YAML is taken as the text that it was written as: `1.10` is not 1.1. */
  readonly isText?: boolean;
  /** The value that wrong text probably means, as one would write it; null: nothing comes to mind. */
  readonly suggest?: (written: string) => string | null;
  /** The only values that it takes, or the plain ones of them; for completion. */
  readonly words?: readonly string[];
  /**
   * How a flag lays its value over the file's. `text` (the usual one) and `list` replace, `append` and `pairs` (`NAME=VALUE`)
   * add, and `switch`, which takes no value, turns on.
   */
  readonly flagForm?: 'text' | 'list' | 'append' | 'pairs' | 'switch';
  /** Of pairs: of the text behind the "=". */
  readonly readFlag?: (typed: string) => FlagReading;
  /** Of pairs: a NAME without a value copies that of the caller's environment. */
  readonly isCopiedByName?: boolean;
  /** The settings within, where it is a mapping with fixed keys, or may be one. */
  readonly fields?: SpecFields;
}

interface FieldOptions {
  /** Sentences that editors and the documentation show. */
  readonly about: string;
  /** As the help shows it: `-e, --env <name=value>`. Without one there is no flag. */
  readonly flag?: string;
  /** The help of the flag where it is not `about`. The default is added to it. */
  readonly help?: string;
  /** What other schedulers and container tools call the setting: lower case, without `-` and `_`. */
  readonly aliases?: readonly string[];
}

interface Default<Value> {
  /** What a job gets whose file does not set it. */
  readonly default: Value | ((file: Mapping) => Value);
  /**
   * The canonical text has it even where it is the default. Only for settings of the first version: a setting that was added
   * later is omitted while it has its default, or the digest of every stored spec would change with an upgrade.
   */
  readonly isAlwaysWritten?: boolean;
}

export interface SpecField<Key extends string, Value, Written, Required extends boolean>
  extends ValueKind<Value, Written>,
    FieldOptions,
    Default<Value> {
  /** In the job file. */
  readonly key: Key;
  readonly isRequired: Required;
}

/** Any one, where its types do not matter. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyField = SpecField<string, any, any, boolean>;

/** Settings by their names in what Muster works with. */
export type SpecFields = Readonly<Record<string, AnyField>>;

/** What Muster works with. */
export type SpecOf<Fields extends SpecFields> = {
  readonly [Name in keyof Fields]: ReturnType<Fields[Name]['read']>;
};

type WrittenOf<Field extends AnyField> = ReturnType<Field['write']>;

/** What users write. */
export type FileOf<Fields extends SpecFields> = {
  readonly [Name in keyof Fields as Fields[Name]['isRequired'] extends true ? never : Fields[Name]['key']]?:
    | WrittenOf<Fields[Name]>
    | undefined;
} & {
  readonly [Name in keyof Fields as Fields[Name]['isRequired'] extends true
    ? Fields[Name]['key']
    : never]: WrittenOf<Fields[Name]>;
};

/** A setting with a default. */
export function field<const Key extends string, Value, Written>(
  key: Key,
  kind: ValueKind<Value, Written>,
  options: FieldOptions & Default<NoInfer<Value>>,
): SpecField<Key, Value, Written, false> {
  return { ...kind, ...options, key, isRequired: false };
}

/** A setting that is null where the file does not set it. */
export function optional<const Key extends string, Value, Written>(
  key: Key,
  kind: ValueKind<Value, Written>,
  options: FieldOptions,
): SpecField<Key, Value | null, Written, false> {
  return { ...(kind as ValueKind<Value | null, Written>), ...options, key, isRequired: false, default: null };
}

/** A setting that the mapping around it must have. */
export function required<const Key extends string, Value, Written>(
  key: Key,
  kind: ValueKind<Value, Written>,
  options: FieldOptions,
): SpecField<Key, Value, Written, true> {
  const missing = (): never => {
    throw new TypeError(`not a checked job spec: no ${key}`);
  };
  return { ...kind, ...options, key, isRequired: true, default: missing };
}

/** Settings as Muster works with them, defaults filled in. @throws {TypeError} the mapping has not passed the check */
export function readFields<Fields extends SpecFields>(fields: Fields, file: Mapping): SpecOf<Fields> {
  // A copy has the names already. To engines an object that gets them one by one is a hash table: larger, and slower to read.
  const spec: Record<string, unknown> = { ...fields };
  for (const name in fields) {
    const { key, default: preset, read } = fields[name] as AnyField;
    const written = file[key];
    spec[name] =
      written !== undefined ? read(written, file) : typeof preset === 'function' ? preset(file) : preset;
  }
  return spec as SpecOf<Fields>;
}

/** Settings as users write them. What is not set is omitted, and so is what has its default, except for the oldest settings. */
export function writeFields<Fields extends SpecFields>(fields: Fields, spec: SpecOf<Fields>): FileOf<Fields> {
  const file: Record<string, unknown> = {};
  for (const name in fields) {
    const each = fields[name] as AnyField;
    const value: unknown = spec[name];
    if (value === null) continue;
    const written: unknown = each.write(value);
    if (each.isAlwaysWritten || !(isEmpty(written) || written === shownDefault(each)))
      file[each.key] = written;
  }
  return file as FileOf<Fields>;
}

/** The default of a setting, as users write it; undefined: it has none, or one that depends on other settings. */
export function shownDefault({ default: preset, write }: AnyField): unknown {
  if (preset === null || typeof preset === 'function') return undefined;
  const written: unknown = write(preset);
  return isEmpty(written) ? undefined : written;
}

function isEmpty(written: unknown): boolean {
  return typeof written === 'object' && written !== null && Object.keys(written).length === 0;
}

/** The schema of a mapping with these settings and no others. */
export function checkFields(z: Zod, fields: SpecFields, error: string) {
  const shape = Object.values(fields).map((each) => {
    const { key, check, isRequired, about } = each;
    const schema = (isRequired ? check(z) : check(z).optional()).describe(about);
    const preset = shownDefault(each);
    return [
      key,
      preset === undefined || isMapping(preset) ? schema : schema.meta({ default: preset }),
    ] as const;
  });
  return z.strictObject(Object.fromEntries(shape), { error });
}

// ---- Kinds

const same = <T>(value: T): T => value;

/** Text of a form. @param form what was expected, in words */
export function text(
  pattern: RegExp,
  form: string,
  more: {
    readonly isText?: boolean;
    readonly suggest?: (written: string) => string | null;
    readonly lengthMax?: readonly [characters: number, form: string];
    /** What the pattern cannot check, with what was expected. */
    readonly refine?: readonly [holds: (text: string) => boolean, form: string];
  } = {},
): ValueKind<string, string> {
  const { refine, lengthMax, ...rest } = more;
  const check = (z: Zod) => {
    const formed = z.string({ error: form }).regex(pattern, { error: form });
    const schema = lengthMax === undefined ? formed : formed.max(lengthMax[0], { error: lengthMax[1] });
    return refine === undefined ? schema : schema.refine(refine[0], { error: refine[1] });
  };
  return { check, form, read: same, write: same, ...rest };
}

/** Text that becomes one argument or environment value of a program. */
export function argument(z: Zod) {
  const error = `text of at most ${argumentBytesMax} bytes without NUL characters`;
  return z
    .string({ error })
    .refine((value) => Buffer.byteLength(value) <= argumentBytesMax && !value.includes('\0'), { error });
}

const scalarText = 'text, a number, or true/false; write "" for empty text';

/** What a YAML writer does not think of as text (`60`, `true`) is taken as the text it was written as. */
export function writtenText(z: Zod) {
  const error = scalarText;
  return z.union([argument(z), z.number({ error }), z.boolean({ error })], { error });
}

export type WrittenText = string | number | boolean;

/** @param form such as `a list such as [--config=config.yaml]` */
export function textList(form: string): ValueKind<readonly string[], readonly WrittenText[]> {
  const check = (z: Zod) => z.array(writtenText(z), { error: form });
  return { check, form, read: (written) => written.map(String), write: (value) => [...value], isText: true };
}

/** A list of texts of one form, each of which stands for a value. */
export function listOf<Value>(
  item: ValueKind<Value, string>,
  form: string,
  most?: readonly [number, string],
): ValueKind<readonly Value[], readonly string[]> {
  return {
    check: (z) => {
      const schema = z.array(item.check(z), { error: form });
      return most === undefined ? schema : schema.max(most[0], { error: most[1] });
    },
    form,
    read: (written, file) => [...new Set(written.map((each) => item.read(each, file)))],
    write: (value) => value.map((each) => item.write(each)),
    flagForm: 'append',
  };
}

export function suggestNumber(written: string): string | null {
  return /^\d{1,15}(?:\.\d{1,6})?$/.test(written.trim()) ? written.trim() : null;
}

/** Text that is not a number goes to the schema as it is, which then reports what was expected. */
export function readNumberFlag(typed: string): { readonly value: unknown } {
  return { value: /^-?\d+(?:\.\d+)?$/.test(typed.trim()) ? Number(typed) : typed };
}

export function wholeNumber(min: number, max: number): ValueKind<number, number> {
  const form = `a whole number from ${min} to ${max}`;
  const error = form;
  const check = (z: Zod) => z.int({ error }).min(min, { error }).max(max, { error });
  return { check, form, read: same, write: same, suggest: suggestNumber, readFlag: readNumberFlag };
}

/** A number that may be a fraction. */
export function number(
  [min, max]: readonly [number, number],
  form: string,
  { isAboveMin = false } = {},
): ValueKind<number, number> {
  const error = form;
  const check = (z: Zod) => {
    const schema = z.number({ error });
    return (isAboveMin ? schema.gt(min, { error }) : schema.min(min, { error })).max(max, { error });
  };
  return { check, form, read: same, write: same, suggest: suggestNumber, readFlag: readNumberFlag };
}

/** 64 TiB; any bound far above real machines, so that no number leaves the exact integers. */
const memoryMbMax = 64 * 1024 * 1024;

/** MB of 1,048,576 bytes in the file, `64G` as a flag. */
export function megabytes(): ValueKind<number, number> {
  return {
    ...wholeNumber(1, memoryMbMax),
    suggest: (written) => parseSizeMb(written)?.toString() ?? suggestNumber(written),
    readFlag: (typed) => {
      const value = parseSizeMb(typed);
      return value === null ? { got: typed, expected: sizeForm } : { value };
    },
  };
}

export const secondMs = 1_000;
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** Milliseconds to Muster, `90s` or a number of seconds in the file. */
export function duration(minMs: number, maxMs: number): ValueKind<number, string | number> {
  const range = `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const error = `a duration ${range}, such as "24h", "1h30m", "90s", "500ms" or a number of seconds`;
  const isInRange = (written: string | number) => {
    const ms = parseDurationMs(written);
    return ms !== null && ms >= minMs && ms <= maxMs;
  };
  return {
    check: (z) =>
      z
        .union(
          [z.string({ error }).regex(durationPattern, { error }), z.number({ error }).min(0, { error })],
          {
            error,
          },
        )
        .refine(isInRange, { error }),
    form: `a duration ${range}`,
    read: (written) => {
      const ms = parseDurationMs(written);
      if (ms === null) throw new TypeError(`not a checked job spec: invalid duration ${written}`);
      return ms;
    },
    write: formatDuration,
    suggest: suggestDuration,
  };
}

/** `a, b or c` */
function oneOf(words: readonly string[]): string {
  return [words.slice(0, -1).join(', '), ...words.slice(-1)].join(' or ');
}

/** @param meant words of other tools, or of everyday, for each of ours: lower case, without `-` and `_` */
export function choice<const Word extends string>(
  words: readonly Word[],
  {
    form = oneOf(words),
    meant,
  }: { readonly form?: string; readonly meant?: Readonly<Partial<Record<Word, readonly string[]>>> } = {},
): ValueKind<Word, Word> {
  return {
    check: (z) => z.enum(words, { error: form }),
    form,
    read: same,
    write: same,
    words,
    suggest: (written) => words.find((word) => meant?.[word]?.includes(plainWord(written))) ?? null,
  };
}

export function plainWord(word: string): string {
  return word.toLowerCase().replaceAll(/[-_ ]/g, '');
}

export function suggestBoolean(written: string): string | null {
  const word = written.trim().toLowerCase();
  if (['yes', 'y', 'on', 'true', '1'].includes(word)) return 'true';
  return ['no', 'n', 'off', 'false', '0'].includes(word) ? 'false' : null;
}

export function boolean(): ValueKind<boolean, boolean> {
  const form = 'true or false';
  const check = (z: Zod) => z.boolean({ error: form });
  return { check, form, read: same, write: same, suggest: suggestBoolean, flagForm: 'switch' };
}

/** A mapping with these settings. @param form such as `a mapping such as {nodes: 2, gpus: 4}` */
export function mapping<Fields extends SpecFields>(
  fields: Fields,
  form: string,
): ValueKind<SpecOf<Fields>, FileOf<Fields>> {
  return {
    check: (z) => checkFields(z, fields, form),
    form,
    read: (written) => readFields(fields, written),
    write: (value) => writeFields(fields, value),
    fields,
  };
}

/** A mapping whose settings have defaults of their own. */
export function section<const Key extends string, Fields extends SpecFields>(
  key: Key,
  fields: Fields,
  form: string,
  options: FieldOptions & Pick<Default<unknown>, 'isAlwaysWritten'>,
) {
  return field(key, mapping(fields, form), { ...options, default: readFields(fields, {}) });
}
