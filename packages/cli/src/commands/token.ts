import { isNodeName } from '@muster/common/ids';
import { addressForOthers, type ConnectionFlags, withConnection } from '../connection.ts';
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
      '\nThe agent takes the token from MUSTER_JOIN_TOKEN or --join-token-file, once. The token also tells it which\n' +
        'coordinator to trust, so hand it over as carefully as a password.',
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
  const { io, clock, environment } = context;
  if (!isNodeName(node)) {
    throw usageError(
      `"${node}" is no node name: 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  const { answer, endpoint } = await withSession(context, flags, async (session) => ({
    answer: await session.api.createJoinToken(node),
    endpoint: session.endpoint,
  }));
  if (flags.output === 'json') {
    await writeJson(io.stdout, answer);
    return exitCodes.ok;
  }
  await io.stdout.write(`${answer.token}\n`);
  const lifetime = durationText(answer.expiresAtMs - clock.wallMs());
  const outside = addressForOthers(endpoint, flags, environment);
  const where =
    outside === null ? 'on this machine: the coordinator serves on loopback only' : 'on its machine';
  await io.stderr.write(
    `For one agent called ${node}, valid for ${lifetime}, ${where}.\n` +
      `  ${joinCommand(node, answer.token, outside ?? endpoint.address)}\n`,
  );
  return exitCodes.ok;
}

/** The token goes into the environment, as arguments are visible to every user of a machine. */
function joinCommand(node: string, token: string, coordinator: string): string {
  const place = `--data muster-${node} --name ${node} --coordinator ${coordinator}`;
  return `MUSTER_JOIN_TOKEN=${token} muster agent ${place}`;
}
