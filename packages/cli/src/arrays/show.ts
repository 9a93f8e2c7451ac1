/** Reading and showing a whole array: `muster job` and `muster explain` of one. */
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import type { OutputFlags } from '../flags.ts';
import type { ArrayReferent } from '../jobs/reference.ts';
import { startProgress } from '../output/screen.ts';
import type { View } from '../output/table.ts';
import { print } from '../query.ts';
import { type ArraySummary, summarizeArray } from './arraySummary.ts';
import { type ArrayJobs, readMembers } from './members.ts';

/** With progress: a large array takes many calls. */
export async function membersOf(
  { io, clock }: Context,
  api: Pick<MusterApi, 'listJobs'>,
  array: ArrayReferent,
): Promise<ArrayJobs> {
  const progress = startProgress(io.stderr, clock);
  try {
    return await readMembers(api, array, clock.wallMs(), (_jobs, read) =>
      progress.show(`${read} of ${array.size} jobs read`),
    );
  } finally {
    progress.end();
  }
}

export async function showArray(
  context: Context,
  api: Pick<MusterApi, 'listJobs'>,
  array: ArrayReferent,
  flags: OutputFlags,
  format: (summary: ArraySummary, options: View) => string,
): Promise<ExitCode> {
  const jobs = await membersOf(context, api, array);
  return print(context, flags, summarizeArray(array, jobs, context.environment.programName), format);
}
