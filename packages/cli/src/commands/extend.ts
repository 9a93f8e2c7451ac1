import { formatDuration, parseDurationMs } from '@muster/common/spec/duration';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { specOf } from '../jobs/summary.ts';
import { durationText } from '../output/times.ts';
import { patiently } from '../patiently.ts';
import { print, type QueryFlags, withQuery } from '../query.ts';
import { explainingSilence, withSession } from '../session.ts';

const longestMs = 365 * 24 * 60 * 60_000;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp).argument('<duration>', 'how much longer, such as 2h');
    withQuery(sub);
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
  flags: QueryFlags,
): Promise<ExitCode> {
  const byMs = parseDurationMs(typed);
  if (byMs === null || byMs < 1 || byMs > longestMs) {
    throw usageError(
      `invalid duration "${typed}" (max ${formatDuration(longestMs)})`,
      'Write it as 90m, 2h or 1d12h.',
    );
  }
  // The request id keeps a second call from adding the time twice.
  const requestId = context.newRequestId();
  const extended = await withSession(context, flags, (session) =>
    explainingSilence(`job ${reference}`, context, () =>
      patiently(session, context, (api) => api.extendJob(reference, byMs, requestId)),
    ),
  );
  return print(context, flags, extended, (job) => {
    const { maxRuntimeMs } = specOf(job);
    const whole = maxRuntimeMs === null ? '' : ` ${durationText(maxRuntimeMs + job.extraRuntimeMs)}`;
    return `Each attempt of ${job.id} may run for${whole} now.\n`;
  });
}
