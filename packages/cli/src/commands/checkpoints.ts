import { formatCheckpoints } from '../checkpoints/checkpointTable.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { nameOf, specOf } from '../jobs/summary.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { withSession } from '../session.ts';

type CheckpointsFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nShows the newest; all are listed in checkpoints_index.json beside them. A job resumes from the newest that is verified ' +
        'and not suspect; muster requeue JOB --from STEP resumes from an earlier one.',
    );
  },
  run: showCheckpoints,
};

async function showCheckpoints(
  context: Context,
  reference: string,
  flags: CheckpointsFlags,
): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const job = await withSession(context, flags, async ({ api }) => api.getJob(reference));
  if (flags.output === 'json') {
    await writeJson(io.stdout, job.checkpoints);
    return exitCodes.ok;
  }
  if (job.checkpoints.length === 0) {
    const { dir } = specOf(job).checkpoint;
    const where = dir === null ? 'the directory in MUSTER_CHECKPOINT_DIR' : dir;
    await io.stderr.write(
      `${printable(nameOf(job))} has saved no checkpoint yet that was seen in ${where}.\n`,
    );
    return exitCodes.ok;
  }
  const options = {
    width: io.stdout.columns(),
    colours: coloursFor(io.stdout, environment),
    nowMs: clock.wallMs(),
  };
  await io.stdout.write(formatCheckpoints(job.checkpoints, options));
  return exitCodes.ok;
}
