import * as z from 'zod';
import { freeMaps, jobFields } from './fields.ts';
import { checkFields } from './kinds.ts';
import { specDepthMax, specProblemsMax } from './limits.ts';
import { isMapping, type SpecPath, valueAt, withValueAt } from './path.ts';
import { type Finding, findingsOf, noOrigin, toProblems } from './problems.ts';
import { contradictions } from './rules.ts';
import { normalizeJobSpec } from './serialize.ts';
import type { JobSpec, SpecResult } from './types.ts';

/** The checks of job files, made of the table. They change nothing; `serialize.ts` turns what passed into a `JobSpec`. */
export const jobSpecSchema = checkFields(
  z,
  jobFields,
  'a mapping of job settings, such as command: [torchrun, train.py]',
).describe('A Muster job.');

/** JSON Schema (2020-12) of the job file, for editors and API documentation. */
export function jobSpecJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...schema } = z.toJSONSchema(jobSpecSchema, { target: 'draft-2020-12', io: 'input' });
  return { $schema, $id: 'urn:muster:job-spec:v1', title: 'Muster job', ...schema };
}

export type CheckResult =
  | { readonly ok: true; readonly spec: JobSpec }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/**
 * Checks a spec in the shape of the job file and completes it. Everything that is wrong is found at once, but for what of long lists
 * and mappings nobody is shown.
 */
export function checkJobSpec(value: unknown): CheckResult {
  if (deeperThan(value, specDepthMax)) return { ok: false, findings: [tooDeep] };
  // zod would compile the schema with `new Function`; for one spec that costs more than it saves, and we allow no eval.
  const cut = cutLongParts(value, (issues, piece) => findingsOf(issues, piece).length);
  const result = jobSpecSchema.safeParse(cut.value, { jitless: true });
  const findings = [
    ...(result.success ? [] : findingsOf(result.error.issues, cut.value)),
    ...(isMapping(value) ? [...prototypeKeys(value), ...contradictions(value)] : []),
  ];
  if (!result.success || findings.length > 0) return { ok: false, findings };
  return { ok: true, spec: normalizeJobSpec(cut.restore(result.data)) };
}

/**
 * The check for a spec that is not a file: what arrives over the API as JSON, in the shape of the job file.
 * Problems have a path but no line. The caller bounds the size (`specBytesMax`) before it parses the JSON.
 */
export function validateJobSpec(value: unknown): SpecResult {
  const result = checkJobSpec(value);
  if (result.ok) return result;
  return {
    ok: false,
    problems: toProblems(result.findings.map((finding) => ({ finding, origin: noOrigin }))),
  };
}

const tooDeep: Finding = {
  path: [],
  at: 'value',
  message: 'nested too deeply',
  expected: `at most ${specDepthMax} levels`,
  suggestion: null,
};

/** Level by level instead of recursively: the depth is what an attacker chooses. */
function deeperThan(value: unknown, depthMax: number): boolean {
  let containers = [value].filter(isContainer);
  for (let depth = 1; containers.length > 0; depth++) {
    if (depth > depthMax) return true;
    containers = containers.flatMap((container) => Object.values(container)).filter(isContainer);
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** zod drops the key `__proto__` of free maps and reports nothing; a setting that vanishes is worse than an error. */
function prototypeKeys(spec: Readonly<Record<string, unknown>>): readonly Finding[] {
  return [...freeMaps.keys()]
    .filter((key) => isMapping(spec[key]) && Object.hasOwn(spec[key], '__proto__'))
    .map((key) => ({
      path: [key, '__proto__'],
      at: 'key',
      message: 'is not a valid name',
      expected: 'another name',
      suggestion: null,
    }));
}

/*
 * Lists and mappings of a spec may hold as many wrong items as fit into its bytes, and people are shown the first ones. What is
 * long is looked at in pieces, so that the check of a spec ends soon after the last problem that is shown.
 */

/** Items that are checked at once. What fits into one piece costs too little to be cut. */
const pieceLength = 256;

interface Part {
  readonly path: SpecPath;
  readonly schema: z.ZodType;
}

/** Every list and mapping whose length is the user's. */
const parts: readonly Part[] = partsOf(jobSpecSchema, []);

function partsOf(schema: z.ZodType, path: SpecPath): readonly Part[] {
  const inner: unknown = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  if (inner instanceof z.ZodObject) {
    const fields = Object.entries(inner.shape);
    return fields.flatMap(([key, field]) => partsOf(field, [...path, key]));
  }
  const forms: readonly unknown[] = inner instanceof z.ZodUnion ? inner.options : [inner];
  const isLong = forms.some((form) => form instanceof z.ZodArray || form instanceof z.ZodRecord);
  return isLong ? [{ path, schema }] : [];
}

export interface CutSpec {
  /** Has the problems of the whole spec that are shown. */
  readonly value: unknown;
  /** The same with its long parts whole again: for what passed the check of `value`. */
  restore<T>(checked: T): T;
}

/**
 * Cuts long parts behind the last piece that is not right, or that is looked at; the first piece always stays. Positions in lists
 * stay what they are.
 * @param problemsOf how many problems there are in a piece
 */
export function cutLongParts(
  value: unknown,
  problemsOf: (issues: readonly z.core.$ZodIssue[], piece: unknown) => number,
): CutSpec {
  const cuts = parts.flatMap(({ path, schema }) => {
    const whole = valueAt(value, path);
    const size = Array.isArray(whole) ? whole.length : isMapping(whole) ? Object.keys(whole).length : 0;
    if (size <= pieceLength) return [];
    const slice = slicer(whole as object);
    let end = pieceLength;
    let problems = 0;
    for (let begin = 0; begin < size && problems <= specProblemsMax; begin += pieceLength) {
      const piece = slice(begin, begin + pieceLength);
      const result = schema.safeParse(piece, { jitless: true });
      if (result.success) continue;
      problems += problemsOf(result.error.issues, piece);
      end = begin + pieceLength;
    }
    return [{ path, whole, shown: slice(0, end) }];
  });
  return {
    value: cuts.reduce<unknown>((spec, { path, shown }) => withValueAt(spec, path, shown), value),
    restore: <T>(checked: T) =>
      cuts.reduce<unknown>((spec, { path, whole }) => withValueAt(spec, path, whole), checked) as T,
  };
}

function slicer(whole: object): (begin: number, end: number) => unknown {
  if (Array.isArray(whole)) return (begin, end) => whole.slice(begin, end);
  const entries = Object.entries(whole);
  return (begin, end) => Object.fromEntries(entries.slice(begin, end));
}
