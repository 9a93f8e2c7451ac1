import type { SpecDocument } from './document.ts';
import { applyOverrides, type Environment, type SpecOverrides } from './overrides.ts';
import { noOrigin, type PlacedFinding, toProblems } from './problems.ts';
import type { SpecResult } from './types.ts';
import { checkJobSpec } from './validate.ts';

/** File (if any) and flags together, checked: every problem with the line or the flag it comes from. */
export function resolveJobSpec(
  document: SpecDocument | null,
  overrides: SpecOverrides,
  environment: Environment,
): SpecResult {
  const merged = applyOverrides(document?.value ?? {}, overrides, environment);
  const checked = checkJobSpec(merged.value);
  const placed = [...(document?.findings ?? []), ...merged.findings];
  if (checked.ok && placed.length === 0) return checked;
  // What stands in for an alias, say, is not what was written: one problem per value is enough.
  const known = new Set(placed.map(({ finding }) => JSON.stringify(finding.path)));
  const further = checked.ok ? [] : checked.findings.filter(({ path }) => !known.has(JSON.stringify(path)));
  const origins = further.map((finding): PlacedFinding => {
    const flag = merged.flagOf(finding.path);
    const inFile = document?.originOf(finding.path, finding.at) ?? noOrigin;
    return { finding, origin: flag === null ? inFile : { ...noOrigin, flag } };
  });
  return { ok: false, problems: toProblems([...placed, ...origins]) };
}

/**
 * A job spec from flags alone, such as `muster submit --gpus 1 -- python train.py`. Loads no YAML parser.
 * @param environment what `--env NAME` without a value copies from
 */
export function jobSpecFromFlags(overrides: SpecOverrides, environment: Environment): SpecResult {
  return resolveJobSpec(null, overrides, environment);
}
