import { isTerminal, type JobStateKind } from '@muster/common/states';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { nameOf } from '../jobs/summary.ts';
import { writeJson } from '../output/json.ts';
import { startProgress } from '../output/progress.ts';
import { withSession } from '../session.ts';

interface StopFlags extends ConnectionFlags, OutputFlags {
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
    withConnection(withOutput(sub));
  },
  run: stopJobs,
};

async function stopJobs(
  context: Context,
  references: readonly string[],
  flags: StopFlags,
): Promise<ExitCode> {
  const { io, clock } = context;
  const jobs = await withSession(context, flags, async ({ api }) => {
    const progress = startProgress(io.stderr, clock);
    const showing = setTimeout(() => progress.show('Stopping'), quietMs);
    try {
      return await api.stopJobs(references, flags.reason, flags.output !== 'json');
    } finally {
      clearTimeout(showing);
      progress.end();
    }
  });
  if (flags.output === 'json') {
    await writeJson(io.stdout, { jobs });
    return exitCodes.ok;
  }
  if (jobs.length === 0) await io.stderr.write('Nothing left to stop: all of these jobs have ended.\n');
  for (const job of jobs.slice(0, listedJobsMax)) {
    await io.stdout.write(`${job.id}  ${nameOf(job)} ${stoppedText(job.state)}\n`);
  }
  if (jobs.length > listedJobsMax) await io.stdout.write(`… and ${jobs.length - listedJobsMax} more\n`);
  return exitCodes.ok;
}

/** A job that was still waiting is cancelled at once; one that had ended before keeps its end. */
function stoppedText(state: JobStateKind): string {
  if (state === 'succeeded' || state === 'failed') return `had already ${state}`;
  return isTerminal(state) ? `is ${state}` : 'is stopping';
}
