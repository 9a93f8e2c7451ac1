import { MusterError } from '@muster/common/errors';
import { isArrayId, isJobId } from '@muster/common/ids';
import { isTerminal, type JobStateKind } from '@muster/common/states';
import type { MusterApi } from '@muster/common/wire/client';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { nameOf } from '../jobs/summary.ts';
import { startProgress } from '../output/screen.ts';
import { print, type QueryFlags, withQuery } from '../query.ts';
import { type RetryOptions, submitPatienceMs, withSession } from '../session.ts';

interface StopFlags extends QueryFlags {
  readonly reason?: string;
}

/** More names than this in one line say nothing to anybody. */
const listedJobsMax = 20;
/** A stop that takes longer, as of a large array, shows that it is under way. */
const quietMs = 250;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<jobs...>', `one or more: ${jobReferenceHelp}; an array is stopped as a whole`);
    sub.option('--reason <text>', 'reason, shown as the cause');
    withQuery(sub);
  },
  run: stopJobs,
};

async function stopJobs(
  context: Context,
  references: readonly string[],
  flags: StopFlags,
): Promise<ExitCode> {
  const { io, clock } = context;
  const stopped = await withSession(context, flags, async (session) => {
    const progress = startProgress(io.stderr, clock);
    const showing = setTimeout(() => progress.show('Stopping'), quietMs);
    const patience: RetryOptions = {
      patienceMs: submitPatienceMs,
      onAway: ({ message }) => progress.show(`${message}; reconnecting`),
    };
    try {
      const ids = await session.retrying(
        (api) => Promise.all(references.map((reference) => idOf(api, reference))),
        patience,
      );
      return await session.retrying(
        (api) => api.stopJobs(ids, flags.reason, flags.output !== 'json'),
        patience,
      );
    } finally {
      clearTimeout(showing);
      progress.end();
    }
  });
  return print(context, flags, stopped, stoppedLines, ({ total }) =>
    total === 0 ? 'Nothing left to stop: all of these jobs have ended.\n' : '',
  );
}

/** A name means the newest job of that name: sent again after a restart, it might mean one that was submitted meanwhile. */
async function idOf(api: MusterApi, reference: string): Promise<string> {
  if (isJobId(reference) || isArrayId(reference)) return reference;
  try {
    return (await api.resolveJob(reference)).id;
  } catch (error) {
    // A token may be for changes only.
    if (error instanceof MusterError && error.code === 'permission_denied') return reference;
    throw error;
  }
}

function stoppedLines({ jobs, total }: Awaited<ReturnType<MusterApi['stopJobs']>>): string {
  const listed = jobs.slice(0, listedJobsMax);
  const lines = listed.map((job) => `${job.id}  ${nameOf(job)} ${stoppedText(job.state)}\n`);
  return lines.join('') + (total > listed.length ? `… and ${total - listed.length} more\n` : '');
}

/** A job that was still waiting is cancelled at once; one that had ended before keeps its end. */
function stoppedText(state: JobStateKind): string {
  if (state === 'succeeded' || state === 'failed') return `had already ${state}`;
  return isTerminal(state) ? `is ${state}` : 'is stopping';
}
