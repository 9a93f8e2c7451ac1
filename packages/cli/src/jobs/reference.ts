import { isJobId } from '@muster/common/ids';
import type { JobReferent, MusterApi } from '@muster/common/wire/client';
import { usageError } from '../errors.ts';

/** What the coordinator takes for JOB, in one line of help. */
export const jobReferenceHelp =
  'id, unique beginning of one, name (the newest of that name), NAME[3] of an array, or `latest`';

/** For commands that take arrays as well. */
export const jobOrArrayHelp = `${jobReferenceHelp}; an array id, or the name of an array: all of its jobs`;

export type ArrayReferent = Extract<JobReferent, { kind: 'array' }>;

type Resolving = Pick<MusterApi, 'resolveJob'>;

/** The job or the array that a reference names; an array of one job is that job. */
export async function referentOf(
  api: Resolving & Pick<MusterApi, 'getJob'>,
  reference: string,
): Promise<JobReferent> {
  if (isJobId(reference)) return { kind: 'job', id: reference };
  const found = await api.resolveJob(reference);
  if (found.kind === 'job' || found.size !== 1) return found;
  return { kind: 'job', id: (await api.getJob(found.id)).id };
}

/** The one job that a reference names, by its id. */
export async function jobIdOf(api: Resolving, reference: string): Promise<string> {
  if (isJobId(reference)) return reference;
  const found = await api.resolveJob(reference);
  if (found.kind === 'job') return found.id;
  throw usageError(
    `${reference} is an array of ${found.size} jobs, and this takes one of them`,
    `Give its index, such as ${found.id}[0]; \`muster jobs --array ${found.id}\` lists them.`,
  );
}
