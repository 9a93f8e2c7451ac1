import { isNodeName } from '@muster/common/ids';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

type TokenFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.addArgument(sub.createArgument('<action>', 'what to do').choices(['create']));
    sub.argument('<node>', 'name of the node whose agent will use the token');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nThe agent takes the token from MUSTER_JOIN_TOKEN or --join-token-file, once.',
    );
  },
  run: createToken,
};

async function createToken(
  context: Context,
  _create: string,
  node: string,
  flags: TokenFlags,
): Promise<ExitCode> {
  const { io, clock } = context;
  if (!isNodeName(node)) {
    throw usageError(
      `"${node}" is no node name: 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  const answer = await withSession(context, flags, ({ api }) => api.createJoinToken(node));
  if (flags.output === 'json') {
    await writeJson(io.stdout, answer);
    return exitCodes.ok;
  }
  await io.stdout.write(`${answer.token}\n`);
  await io.stderr.write(
    `For one agent called ${node}, valid for ${durationText(answer.expiresAtMs - clock.wallMs())}.\n`,
  );
  return exitCodes.ok;
}
