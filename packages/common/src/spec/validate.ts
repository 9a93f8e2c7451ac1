import { freeMaps } from './fields.ts';
import { specDepthMax } from './limits.ts';
import { cutLongParts } from './longParts.ts';
import { isMapping } from './path.ts';
import { type Finding, findingsOf, noOrigin, toProblems } from './problems.ts';
import { contradictions } from './rules.ts';
import { jobSpecSchema } from './schema.ts';
import { normalizeJobSpec } from './serialize.ts';
import type { JobSpec, SpecResult } from './types.ts';

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
 * The check for a spec that is no file: what arrives over the API as JSON, in the shape of the job file.
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

/** zod drops the key `__proto__` of free maps without a word; a setting that vanishes is worse than an error. */
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
