/**
 * Two jobs never save into one directory: at the same time each would resume from, and write over, what the other saves; one
 * after the other the second would write over what the first has saved, unless it continues from that.
 */
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { parseDependency } from '@muster/common/spec/after';
import { fillArrayIndex } from '@muster/common/spec/arrayIndex';
import { namedCheckpointDir } from '@muster/common/spec/checkpointDir';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job, JobArray } from '../model.ts';
import type { Draft } from '../state/state.ts';

/**
 * @param command an array, or one job with its place in an array if it has one
 * @throws {MusterError} `failed_precondition` when an active job saves there, also when this one comes after it
 */
export function requireDirectoryToItself(
  draft: Draft,
  { spec, place }: { readonly spec: JobSpec; readonly place: JobArray | null },
): void {
  const written = namedCheckpointDir(spec);
  if (written === null) return;
  for (const directory of directoriesOf(written, spec, place)) {
    const [other] = draft.jobsSavingIn(directory);
    if (other !== undefined) throw taken(directory, other, comesAfter(draft, spec, other.id));
  }
}

function* directoriesOf(written: string, { array }: JobSpec, place: JobArray | null): Generator<string> {
  if (array === null || place !== null) {
    yield place === null ? written : fillArrayIndex(written, place.index);
    return;
  }
  for (const [first, last] of array.ranges)
    for (let index = first; index <= last; index += 1) yield fillArrayIndex(written, index);
}

function taken(directory: string, { id, spec, state }: Job, isAfter: boolean): MusterError {
  const what = `${id} (${spec.name}) is ${state.kind} and saves its checkpoints in ${directory}`;
  // `after` alone means that it would begin at step 0, in the directory that holds the result of the other.
  return new MusterError(
    'failed_precondition',
    isAfter
      ? `${what}, which this job would write over when it starts after it. Give this job another checkpoint.dir, or submit ` +
          `it when that one has ended, to continue from its checkpoints: muster submit --resume-from ${id}`
      : `${what}. Give this job another checkpoint.dir, or wait until that one has ended (muster stop ${id} ends it) and ` +
          `continue from it: muster submit --resume-from ${id}`,
  );
}

/** Directly, or after one that does. */
function comesAfter(draft: Draft, { after }: JobSpec, id: JobId): boolean {
  const seen = new Set<string>();
  const idsIn = (texts: readonly string[]) => texts.map((text) => parseDependency(text).on);
  const waiting = idsIn(after);
  for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
    if (each === id) return true;
    if (seen.has(each)) continue;
    seen.add(each);
    waiting.push(...idsIn(draft.job(each as JobId)?.spec.after ?? []));
  }
  return false;
}
