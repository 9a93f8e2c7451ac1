/** The places of problems in a file that the coordinator has found. Pure. */
import type { MusterError } from '@muster/common/errors';
import type { SpecDocument } from '@muster/common/spec/document';
import { formatPath, isMapping, type SpecPath } from '@muster/common/spec/path';
import { noOrigin } from '@muster/common/spec/problems';
import type { SpecProblem } from '@muster/common/spec/types';

/**
 * Problems that the coordinator has found, which knows paths alone, with their places in the file as far as what they name is in it.
 * @param isMeant whether what stands at the path counts, and not a flag in its place
 */
export function placedInFile(
  { value, originOf }: Pick<SpecDocument, 'value' | 'originOf'>,
  problems: MusterError['problems'],
  isMeant: (path: SpecPath) => boolean = () => true,
): readonly SpecProblem[] {
  const paths = new Map(pathsIn(value, []).map((path) => [formatPath(path), path]));
  return problems.map((problem) => {
    const path = paths.get(problem.path);
    const origin = path === undefined || !isMeant(path) ? noOrigin : originOf(path, 'value');
    return { ...problem, ...origin };
  });
}

function pathsIn(value: unknown, path: SpecPath): readonly SpecPath[] {
  const members: readonly [string | number, unknown][] = Array.isArray(value)
    ? value.map((each, index) => [index, each])
    : isMapping(value)
      ? Object.entries(value)
      : [];
  return [path, ...members.flatMap(([key, each]) => pathsIn(each, [...path, key]))];
}
