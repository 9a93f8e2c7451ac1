import { isJobId } from '@muster/common/ids';
import type { MusterApi } from '@muster/common/wire/client';
import { usageError } from '../errors.ts';

/** What the coordinator takes for JOB, in one line of help. */
export const jobReferenceHelp =
  'id, unique beginning of one, name (the newest of that name), NAME[3] of an array, or `latest`';

/** The one job that a reference names, by its id. */
export async function jobIdOf(api: Pick<MusterApi, 'resolveJob'>, reference: string): Promise<string> {
  if (isJobId(reference)) return reference;
  const found = await api.resolveJob(reference);
  if (found.kind === 'job') return found.id;
  throw usageError(
    `${reference} is an array of ${found.size} jobs, and this takes one of them`,
    `Give its index, such as ${found.id}[0]; \`muster jobs --array ${found.id}\` lists them.`,
  );
}
