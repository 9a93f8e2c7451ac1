/** From what the checks find to what a person reads: "got this; expected that; did you mean …?". */
import type * as z from 'zod';
import { specProblemsMax } from './limits.ts';
import { formatPath, quote, type SpecPath, valueAt } from './path.ts';
import { closest, knownMapping, specKeys, suggestKey, suggestValue } from './suggest.ts';
import type { SpecProblem } from './types.ts';

/** A problem before it is known where the value came from. */
export interface Finding {
  readonly path: SpecPath;
  /** Whether the key itself or its value is wrong: where a caret points. */
  readonly at: 'key' | 'value';
  readonly message: string;
  readonly expected: string | null;
  readonly suggestion: string | null;
}

/** Where a finding's value was written: a place in the file or a flag. */
export interface Origin {
  readonly line: number | null;
  readonly column: number | null;
  readonly flag: string | null;
}

export const noOrigin: Origin = { line: null, column: null, flag: null };

/** What the schema found. @param root the value that was checked */
export function findingsOf(issues: readonly z.core.$ZodIssue[], root: unknown): readonly Finding[] {
  const findings = issues.flatMap((issue) => findingsOfIssue(issue, [], root));
  // A value that fails its form fails the bounds too: one problem for it is enough.
  const first = new Map<string, Finding>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.at, finding.path]);
    if (!first.has(key)) first.set(key, finding);
  }
  return [...first.values()];
}

function findingsOfIssue(issue: z.core.$ZodIssue, outer: SpecPath, root: unknown): readonly Finding[] {
  const path = [...outer, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
  switch (issue.code) {
    case 'unrecognized_keys':
      // Suggestions cost time, and only the first problems are shown.
      return issue.keys.slice(0, specProblemsMax + 1).map((key) => unknownKey(path, key));
    case 'invalid_key': {
      const expected = issue.issues[0]?.message ?? null;
      return [{ path, at: 'key', message: 'is not a valid name', expected, suggestion: null }];
    }
    case 'invalid_union': {
      // A list with wrong items is meant as a list, a mapping with wrong keys as one: blame the parts, not the whole.
      const inner = issue.errors.find((branch) =>
        branch.every(({ path: at, code }) => at.length > 0 || code === 'unrecognized_keys'),
      );
      if (inner) return inner.flatMap((nested) => findingsOfIssue(nested, path, root));
      return [wrongValue(path, issue.message, root, null)];
    }
    case 'invalid_value': {
      const words = issue.values.filter((value) => typeof value === 'string');
      const written = valueAt(root, path);
      return [
        wrongValue(path, issue.message, root, typeof written === 'string' ? meantBy(written, words) : null),
      ];
    }
    default:
      return [wrongValue(path, issue.message, root, null)];
  }
}

/** `TERM` is short for `SIGTERM`. */
function meantBy(written: string, words: readonly string[]): string | null {
  const isShort = (word: string) => written.length >= 3 && word.endsWith(written.toUpperCase());
  return closest(written, words) ?? words.find(isShort) ?? null;
}

export function unknownKey(mapping: SpecPath, key: string): Finding {
  const known = knownMapping(mapping);
  const suggestion = suggestKey(key, known, specKeys);
  const keys = specKeys.get(known) ?? [];
  const expected = suggestion === null ? `one of ${keys.join(', ')}` : null;
  return { path: [...mapping, key], at: 'key', message: 'unknown key', expected, suggestion };
}

function wrongValue(path: SpecPath, expected: string, root: unknown, suggestion: string | null): Finding {
  const written = valueAt(root, path);
  const meant = suggestion ?? suggestValue(path, written);
  return { path, at: 'value', message: describeValue(written), expected, suggestion: meant };
}

/** `got "x"`, `got a list`, `has no value` */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'missing';
    case 'string':
      return `got ${quote(value, 60)}`;
    case 'number':
      // Beyond that the digits of a double are not the digits that were written.
      return Math.abs(value) > Number.MAX_SAFE_INTEGER ? 'got a number that is too large' : `got ${value}`;
    case 'boolean':
      return `got ${value}`;
    default:
      if (value === null) return 'has no value';
      if (!Array.isArray(value)) return 'got a mapping';
      return value.length === 0 ? 'got an empty list' : 'got a list';
  }
}

export interface PlacedFinding {
  readonly finding: Finding;
  readonly origin: Origin;
}

/** The problems as people see them: in the order of the file, and not more than anyone reads. */
export function toProblems(placed: readonly PlacedFinding[]): readonly SpecProblem[] {
  const problems = placed
    .toSorted(
      (a, b) =>
        order(a.origin.line) - order(b.origin.line) || order(a.origin.column) - order(b.origin.column),
    )
    .slice(0, specProblemsMax)
    .map(({ finding: { path, message, expected, suggestion }, origin }) => {
      return { path: formatPath(path), ...origin, message, expected, suggestion };
    });
  if (placed.length <= problems.length) return problems;
  const message = `more than ${specProblemsMax} problems; the others are not shown`;
  return [...problems, { path: '', ...noOrigin, message, expected: null, suggestion: null }];
}

/** Without a place (flags, API calls): after those that have one, in the order of the checks. */
function order(position: number | null): number {
  return position ?? Number.MAX_SAFE_INTEGER;
}
