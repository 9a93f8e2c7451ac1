import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type RemoveFlags = ConnectionFlags & OutputFlags;

export const nodeRemove: Subcommand = {
  name: 'remove',
  summary: 'remove a node without tasks: its credential is revoked, and its name can be used again',
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nAn agent that still runs there is refused from then on. A reinstalled machine only needs to ' +
        'join again: `muster token create NODE --replace`.',
    );
  },
  run: removeNode,
};

async function removeNode(context: Context, name: string, flags: RemoveFlags): Promise<ExitCode> {
  const { io } = context;
  await withSession(context, flags, ({ api }) => api.removeNode(name));
  if (flags.output === 'json') await writeJson(io.stdout, { node: name });
  else await io.stdout.write(`${name} was removed from the cluster.\n`);
  return exitCodes.ok;
}
