/**
 * The operator's changes to the table of conditions, YAML or JSON:
 *
 *     conditions:
 *       xid_109: {action: note}
 *       thermal_throttling: {severity: critical, action: drain_gpu, quiet: 10m}
 *     thresholds:
 *       retired_pages: 60
 *
 * Rows and settings that are not named stay as they are. Numbered kinds (`xid_200`, `sxid_12028_fatal`) may be added.
 */
import { readFileSync } from 'node:fs';
import { conditionActions, conditionEnds, conditionSeverities } from '@muster/common/conditions';
import { MusterError, messageOf, type SpecProblemView } from '@muster/common/errors';
import { formatDuration, parseDurationMs, suggestDuration } from '@muster/common/spec/duration';
import { problemSentence } from '@muster/common/spec/format';
import { formatPath, type SpecPath, valueAt } from '@muster/common/spec/path';
import { describeValue } from '@muster/common/spec/problems';
import { closest } from '@muster/common/spec/suggest';
import { parseDocument } from 'yaml';
import * as z from 'zod';
import {
  type ConditionRow,
  type ConditionTable,
  defaultConditionTable,
  type HealthThresholds,
  isNumberedKind,
  messageFields,
  rowOf,
} from './conditionTable.ts';

const fileBytesMax = 256 * 1024;
const problemsMax = 100;
const dayMs = 86_400_000;

/** @throws {MusterError} naming every problem at once, each with path, what was expected and what was probably meant */
export function readConditionTable(path: string): ConditionTable {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const message = `the table of conditions ${path} cannot be read (${messageOf(error)}); make it readable, or start without it`;
    throw new MusterError('invalid', message, { cause: error });
  }
  const result = parseConditionTable(text);
  if (result.ok) return result.table;
  const lines = result.problems.map((problem) => `  ${problemSentence({ ...problem, flag: null })}`);
  const message = `the table of conditions ${path} is not valid; fix it, or start without it:\n${lines.join('\n')}`;
  throw new MusterError('invalid', message, { problems: result.problems });
}

export type TableResult =
  | { readonly ok: true; readonly table: ConditionTable }
  | { readonly ok: false; readonly problems: readonly SpecProblemView[] };

/** Never throws: whatever is wrong comes back as problems. */
export function parseConditionTable(text: string): TableResult {
  if (Buffer.byteLength(text) > fileBytesMax) {
    return refused([whole(`larger than ${fileBytesMax / 1024} KB`, 'a table of conditions')]);
  }
  const read = readDocument(text);
  if (!read.ok)
    return refused(read.messages.map((message) => whole(message, 'YAML or JSON without aliases')));
  const value = read.value ?? {};
  // zod would compile the schema with `new Function`; for one file that costs more than it saves.
  const result = fileSchema.safeParse(value, { jitless: true });
  if (!result.success) return refused(result.error.issues.flatMap((issue) => problemsOf(issue, value)));
  return { ok: true, table: laidOver(defaultConditionTable, result.data) };
}

type DocumentResult = { ok: true; value: unknown } | { ok: false; messages: readonly string[] };

function readDocument(text: string): DocumentResult {
  try {
    const document = parseDocument(text, { version: '1.2', schema: 'core', uniqueKeys: true });
    const messages = document.errors.map((error) => firstLine(error.message));
    if (messages.length > 0) return { ok: false, messages };
    return { ok: true, value: document.toJS({ maxAliasCount: 0 }) };
  } catch (error) {
    // Aliases, and nesting so deep that the parser gives up.
    return { ok: false, messages: [firstLine(messageOf(error))] };
  }
}

function refused(problems: readonly SpecProblemView[]): TableResult {
  return { ok: false, problems: problems.slice(0, problemsMax) };
}

// ---- The shape

function duration() {
  const error = `a duration of at most ${formatDuration(365 * dayMs)}, such as "10m", "90s" or a number of seconds`;
  return z
    .union([z.string({ error }), z.number({ error })], { error })
    .refine((written) => (parseDurationMs(written) ?? Number.POSITIVE_INFINITY) <= 365 * dayMs, { error });
}

function wholeNumber(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

function percent() {
  const error = 'a number from 0 to 100';
  return z.number({ error }).min(0, { error }).max(100, { error });
}

function word<const T extends readonly string[]>(words: T) {
  return z.enum(words, { error: `one of ${words.join(', ')}` });
}

const messageForm = `one sentence of 1 to 300 characters; may hold ${messageFields.map((field) => `{${field}}`).join(', ')}`;
const message = z
  .string({ error: messageForm })
  .min(1, { error: messageForm })
  .max(300, { error: messageForm })
  .refine((text) => !/\p{Cc}/u.test(text) && onlyKnownFields(text), { error: messageForm });

function onlyKnownFields(text: string): boolean {
  return [...text.matchAll(/\{(\w*)\}/g)].every(([, name]) => messageFields.some((field) => field === name));
}

const rowShape = {
  severity: word(conditionSeverities).optional(),
  action: word(conditionActions).optional(),
  clears: word(conditionEnds).optional(),
  quiet: duration().optional(),
  raise_after: duration().optional(),
  message: message.optional(),
};

const thresholdShape = {
  growth_window: duration().optional(),
  ecc_corrected: wholeNumber(1, 1e12).optional(),
  nvlink_errors: wholeNumber(1, 1e12).optional(),
  pcie_replays: wholeNumber(1, 1e12).optional(),
  retired_pages: wholeNumber(1, 1e6).optional(),
  clock_skew: duration().optional(),
  disk_free_mb: wholeNumber(0, 1e9).optional(),
  disk_free_percent: percent().optional(),
  inodes_free_percent: percent().optional(),
  follow_up: duration().optional(),
  suspect_jobs: wholeNumber(2, 1000).optional(),
  suspect_window: duration().optional(),
  suspect_boots: wholeNumber(1, 1000).optional(),
};

const mapping = (what: string) => `a mapping of ${what}`;

const fileSchema = z.strictObject(
  {
    conditions: z
      .record(
        z.string().refine(isKnownKind, { error: 'a kind of condition' }),
        z.strictObject(rowShape, { error: mapping('severity, action, clears, quiet, raise_after, message') }),
        { error: mapping('kinds of conditions') },
      )
      .optional(),
    thresholds: z.strictObject(thresholdShape, { error: mapping('thresholds') }).optional(),
  },
  { error: mapping('conditions and thresholds') },
);

type TableFile = z.infer<typeof fileSchema>;

function isKnownKind(kind: string): boolean {
  return defaultConditionTable.rows.has(kind) || isNumberedKind(kind);
}

// ---- Laying it over

function laidOver(table: ConditionTable, file: TableFile): ConditionTable {
  const rows = new Map(table.rows);
  for (const [kind, change] of Object.entries(file.conditions ?? {})) {
    const { quiet, raise_after: raiseAfter, ...words } = change;
    const times = { quietMs: milliseconds(quiet), raiseAfterMs: milliseconds(raiseAfter) };
    rows.set(kind, { ...rowOf(table, kind), ...given<ConditionRow>({ ...words, ...times }) });
  }
  const written = file.thresholds ?? {};
  const thresholds = given<HealthThresholds>({
    growthWindowMs: milliseconds(written.growth_window),
    eccCorrected: written.ecc_corrected,
    nvlinkErrors: written.nvlink_errors,
    pcieReplays: written.pcie_replays,
    retiredPages: written.retired_pages,
    clockSkewMs: milliseconds(written.clock_skew),
    diskFreeMb: written.disk_free_mb,
    diskFreePercent: written.disk_free_percent,
    inodesFreePercent: written.inodes_free_percent,
    followUpMs: milliseconds(written.follow_up),
    suspectJobs: written.suspect_jobs,
    suspectWindowMs: milliseconds(written.suspect_window),
    suspectBoots: written.suspect_boots,
  });
  return { rows, thresholds: { ...table.thresholds, ...thresholds } };
}

function milliseconds(written: string | number | undefined): number | undefined {
  return written === undefined ? undefined : (parseDurationMs(written) ?? undefined);
}

function given<T>(values: { readonly [K in keyof T]?: T[K] | undefined }): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

// ---- Problems

const topKeys = ['conditions', 'thresholds'];

function problemsOf(issue: z.core.$ZodIssue, root: unknown): readonly SpecProblemView[] {
  const path: SpecPath = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey([...path, key], key, keysAt(path), 'unknown key'));
  }
  if (issue.code === 'invalid_key') {
    const kinds = [...defaultConditionTable.rows.keys()];
    return [unknownKey(path, String(path.at(-1)), kinds, 'unknown kind of condition')];
  }
  const written = valueAt(root, path);
  const words =
    issue.code === 'invalid_value' ? issue.values.filter((value) => typeof value === 'string') : [];
  return [
    {
      path: formatPath(path),
      message: describeValue(written),
      expected: issue.message,
      suggestion: typeof written === 'string' ? (closest(written, words) ?? suggestDuration(written)) : null,
    },
  ];
}

function unknownKey(path: SpecPath, key: string, known: readonly string[], text: string): SpecProblemView {
  const suggestion = closest(key, known);
  const few = known.length <= 20 ? `one of ${known.join(', ')}` : 'a kind of condition, such as xid_79';
  return { path: formatPath(path), message: text, expected: suggestion === null ? few : null, suggestion };
}

function keysAt(path: SpecPath): readonly string[] {
  if (path.length === 0) return topKeys;
  return Object.keys(path[0] === 'thresholds' ? thresholdShape : rowShape);
}

function whole(text: string, expected: string): SpecProblemView {
  return { path: '', message: text, expected, suggestion: null };
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.replace(/:$/, '') ?? '';
}
