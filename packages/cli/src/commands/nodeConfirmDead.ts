import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type ConfirmDeadFlags = ConnectionFlags & OutputFlags;

export const nodeConfirmDead: Subcommand = {
  name: 'confirm-dead',
  summary: 'confirm that nothing runs on a silent node: its jobs are rescheduled at once',
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nMake sure first that the machine is off, or that its agent and tasks have ended. A node that only lost its network ' +
        'keeps running until its leases expire, and its jobs would run twice.',
    );
  },
  run: confirmDead,
};

async function confirmDead(context: Context, name: string, flags: ConfirmDeadFlags): Promise<ExitCode> {
  const { io } = context;
  const node = await withSession(context, flags, ({ api }) => api.confirmDead(name));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  await io.stdout.write(`${node.name} is confirmed dead: its tasks have ended as node_lost.\n`);
  return exitCodes.ok;
}
