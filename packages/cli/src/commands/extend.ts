import { formatDuration, parseDurationMs } from '@muster/common/spec/duration';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { specOf } from '../jobs/summary.ts';
import { writeJson } from '../output/json.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

type ExtendFlags = ConnectionFlags & OutputFlags;

const longestMs = 365 * 24 * 60 * 60_000;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp).argument('<duration>', 'how much longer, such as 2h');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nFor jobs with a max_runtime. Applies to the running attempt and to later ones.',
    );
  },
  run: extend,
};

async function extend(
  context: Context,
  reference: string,
  typed: string,
  flags: ExtendFlags,
): Promise<ExitCode> {
  const { io } = context;
  const byMs = parseDurationMs(typed);
  if (byMs === null || byMs < 1 || byMs > longestMs) {
    throw usageError(
      `invalid duration "${typed}" (max ${formatDuration(longestMs)})`,
      'Write it as 90m, 2h or 1d12h.',
    );
  }
  const job = await withSession(context, flags, async ({ api }) => api.extendJob(reference, byMs));
  if (flags.output === 'json') {
    await writeJson(io.stdout, job);
    return exitCodes.ok;
  }
  const { maxRuntimeMs } = specOf(job);
  const whole = maxRuntimeMs === null ? '' : ` ${durationText(maxRuntimeMs + job.extraRuntimeMs)}`;
  await io.stdout.write(`Each attempt of ${job.id} may run for${whole} now.\n`);
  return exitCodes.ok;
}
