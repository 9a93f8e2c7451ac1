import { formatArraySummary } from '../arrays/arrayText.ts';
import { showArray } from '../arrays/show.ts';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { formatJob } from '../jobs/jobDetail.ts';
import { jobOrArrayHelp, referentOf } from '../jobs/reference.ts';
import { printable } from '../output/text.ts';
import { ask, print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

interface JobFlags extends QueryFlags {
  readonly status?: boolean;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<job>', jobOrArrayHelp)
      .option('--status', 'only its training_status.md: progress, last checkpoint, attempts, risks');
    withQuery(sub);
  },
  run: showJob,
};

function showJob(context: Context, reference: string, flags: JobFlags): Promise<ExitCode> {
  if (flags.status === true) {
    return ask(
      context,
      flags,
      async (api) => ({ markdown: await api.getTrainingStatus(reference) }),
      ({ markdown }) => printable(markdown, { keepLines: true }),
    );
  }
  return withSession(context, flags, async ({ api }) => {
    const found = await referentOf(api, reference);
    if (found.kind === 'array') return showArray(context, api, found, flags, formatArraySummary);
    return print(context, flags, await api.getJob(found.id), formatJob);
  });
}
