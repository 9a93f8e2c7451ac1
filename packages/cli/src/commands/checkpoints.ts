import type { JobView } from '@muster/common/views';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { nameOf, specOf } from '../jobs/summary.ts';
import { formatCheckpoints } from '../jobs/trainingText.ts';
import { printable } from '../output/text.ts';
import { print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nShows the newest; all are listed in checkpoints_index.json beside them. A job resumes from the newest that is verified ' +
        'and not suspect; muster requeue JOB --from STEP resumes from an earlier one.',
    );
  },
  run: showCheckpoints,
};

async function showCheckpoints(context: Context, reference: string, flags: QueryFlags): Promise<ExitCode> {
  const job = await withSession(context, flags, ({ api }) => api.getJob(reference));
  const { checkpoints } = job;
  const isEmpty = checkpoints.length === 0;
  return print(
    context,
    flags,
    checkpoints,
    (_answer, view) => (isEmpty ? '' : formatCheckpoints(checkpoints, view)),
    () => (isEmpty ? noneText(job) : ''),
  );
}

function noneText(job: JobView): string {
  const { dir } = specOf(job).checkpoint;
  const where = dir === null ? 'the directory in MUSTER_CHECKPOINT_DIR' : dir;
  return `${printable(nameOf(job))} has saved no checkpoint yet that was seen in ${where}.\n`;
}
