import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { writeJson } from '../output/json.ts';
import { bytesText } from '../output/times.ts';
import { withSession } from '../session.ts';

type RemoveFlags = ConnectionFlags & OutputFlags;

export const logsRemove: Subcommand = {
  name: 'rm',
  summary: 'delete the stored output of a job and free its space',
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    withConnection(withOutput(sub));
    sub.addHelpText('after', '\nLater output of a running job is kept.');
  },
  run: removeLogs,
};

async function removeLogs(context: Context, reference: string, flags: RemoveFlags): Promise<ExitCode> {
  const { io } = context;
  const removed = await withSession(context, flags, async ({ api }) => api.removeLogs(reference));
  if (flags.output === 'json') {
    await writeJson(io.stdout, removed);
    return exitCodes.ok;
  }
  const { jobId, bytesFreed } = removed;
  const text =
    bytesFreed === 0 ? 'had no output here' : `no longer has output here; ${bytesText(bytesFreed)} freed`;
  await io.stdout.write(`${jobId} ${text}\n`);
  return exitCodes.ok;
}
