/** Two jobs never save into one directory at the same time: each would resume from, and write over, what the other saves. */
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { fillArrayIndex } from '@muster/common/spec/arrayIndex';
import { namedCheckpointDir } from '@muster/common/spec/checkpointDir';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job, JobArray } from '../model.ts';
import type { Draft } from '../state.ts';

/**
 * @param command an array, or one job with its place in an array if it has one
 * @throws {MusterError} `failed_precondition` when an active job saves there that this one does not come after
 */
export function requireDirectoryToItself(
  draft: Draft,
  { spec, place }: { readonly spec: JobSpec; readonly place: JobArray | null },
): void {
  const written = namedCheckpointDir(spec);
  if (written === null) return;
  for (const directory of directoriesOf(written, spec, place)) {
    const other = draft.jobsSavingIn(directory).find(({ id }) => !comesAfter(draft, spec, id));
    if (other !== undefined) throw taken(directory, other);
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

function taken(directory: string, { id, spec, state }: Job): MusterError {
  return new MusterError(
    'failed_precondition',
    `${id} (${spec.name}) is ${state.kind} and saves its checkpoints in ${directory}. Give this job another ` +
      `checkpoint.dir, or wait until that one has ended (muster stop ${id} ends it) and continue from it: ` +
      `muster submit --resume-from ${id}`,
  );
}

/** Directly, or after one that does. */
function comesAfter(draft: Draft, { after }: JobSpec, id: JobId): boolean {
  const seen = new Set<string>();
  const waiting = [...after];
  for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
    if (each === id) return true;
    if (seen.has(each)) continue;
    seen.add(each);
    waiting.push(...(draft.job(each as JobId)?.spec.after ?? []));
  }
  return false;
}
