/** Reading and showing a whole array: `muster job` and `muster explain` of one. */
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import type { OutputFlags } from '../flags.ts';
import type { ArrayReferent } from '../jobs/reference.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { startProgress } from '../output/progress.ts';
import { type ArraySummary, summarizeArray } from './arraySummary.ts';
import type { ArrayTextOptions } from './arrayText.ts';
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
  format: (summary: ArraySummary, options: ArrayTextOptions) => string,
): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const jobs = await membersOf(context, api, array);
  const summary = summarizeArray(array, jobs, environment.programName);
  if (flags.output === 'json') {
    await writeJson(io.stdout, summary);
    return exitCodes.ok;
  }
  const options = {
    width: io.stdout.columns(),
    colours: coloursFor(io.stdout, environment),
    nowMs: clock.wallMs(),
  };
  await io.stdout.write(format(summary, options));
  return exitCodes.ok;
}
