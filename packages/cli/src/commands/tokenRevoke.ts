import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type RevokeFlags = ConnectionFlags & OutputFlags;

export const tokenRevoke: Subcommand = {
  name: 'revoke',
  summary: 'revoke a credential or join token at once, and close its open connections',
  define(sub) {
    sub.argument('<name>', 'id, unique beginning of one, or a node for all of its credentials');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nTasks of the node keep running until their leases expire, and are then fenced like those of any silent ' +
        'node.\n`muster token create NODE --replace` lets its agent join again.',
    );
  },
  run: revoke,
};

async function revoke(context: Context, name: string, flags: RevokeFlags): Promise<ExitCode> {
  const { io } = context;
  const ids = await withSession(context, flags, ({ api }) => api.revokeCredential(name));
  if (flags.output === 'json') {
    await writeJson(io.stdout, { ids });
    return exitCodes.ok;
  }
  for (const id of ids) await io.stdout.write(`${id} is revoked.\n`);
  return exitCodes.ok;
}
