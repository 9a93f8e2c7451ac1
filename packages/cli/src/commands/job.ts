import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { formatJob } from '../jobs/jobDetail.ts';
import { jobReferenceHelp, resolveJob } from '../jobs/reference.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type JobFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    withConnection(withOutput(sub));
  },
  run: showJob,
};

async function showJob(context: Context, reference: string, flags: JobFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const job = await withSession(context, flags, async ({ api }) =>
    api.getJob(await resolveJob(api, reference, context)),
  );
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
}
