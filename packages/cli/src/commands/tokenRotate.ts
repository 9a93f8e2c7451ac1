import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type RotateFlags = ConnectionFlags & OutputFlags;

export const tokenRotate: Subcommand = {
  name: 'rotate',
  summary: 'replace the admin token; the current one ends at once',
  define(sub) {
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      "\nThe coordinator's admin.token holds the new one; copy it to other machines. Open watches of the old token end.",
    );
  },
  run: rotate,
};

async function rotate(context: Context, flags: RotateFlags): Promise<ExitCode> {
  const { io } = context;
  const token = await withSession(context, flags, ({ api }) => api.rotateAdminToken());
  if (flags.output === 'json') {
    await writeJson(io.stdout, { token });
    return exitCodes.ok;
  }
  await io.stdout.write(`${token}\n`);
  await io.stderr.write(
    'The earlier admin token is no longer valid; commands on its machine use the new one.\n',
  );
  return exitCodes.ok;
}
