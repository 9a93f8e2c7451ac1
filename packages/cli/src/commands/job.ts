import { formatArraySummary } from '../arrays/arrayText.ts';
import { showArray } from '../arrays/show.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { formatJob } from '../jobs/jobDetail.ts';
import { jobOrArrayHelp, referentOf } from '../jobs/reference.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { withSession } from '../session.ts';

interface JobFlags extends ConnectionFlags, OutputFlags {
  readonly status?: boolean;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<job>', jobOrArrayHelp)
      .option('--status', 'only its training_status.md: progress, last checkpoint, attempts, risks');
    withConnection(withOutput(sub));
  },
  run: showJob,
};

async function showJob(context: Context, reference: string, flags: JobFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  if (flags.status === true) {
    const status = await withSession(context, flags, async ({ api }) => api.getTrainingStatus(reference));
    if (flags.output === 'json') await writeJson(io.stdout, { markdown: status });
    else await io.stdout.write(printable(status, { keepLines: true }));
    return exitCodes.ok;
  }
  return withSession(context, flags, async ({ api }) => {
    const found = await referentOf(api, reference);
    if (found.kind === 'array') return showArray(context, api, found, flags, formatArraySummary);
    const job = await api.getJob(found.id);
    if (flags.output === 'json') {
      await writeJson(io.stdout, job);
      return exitCodes.ok;
    }
    const text = formatJob(job, {
      width: io.stdout.columns(),
      colours: coloursFor(io.stdout, environment),
      nowMs: clock.wallMs(),
      programName: environment.programName,
    });
    await io.stdout.write(text);
    return exitCodes.ok;
  });
}
