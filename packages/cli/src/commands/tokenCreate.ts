import { isNodeName } from '@muster/common/ids';
import { addressForOthers, type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

interface CreateFlags extends ConnectionFlags, OutputFlags {
  readonly replace?: boolean;
}

export const tokenCreate: Subcommand = {
  name: 'create',
  summary: 'create a single-use token with which the agent of one node joins',
  define(sub) {
    sub
      .argument('<node>', 'name of the node whose agent will use the token')
      .option(
        '--replace',
        'for a reinstalled machine: the old credential of the node ends when this token is used',
      );
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nThe agent reads the token once, from --join-token-file (- is standard input) or MUSTER_JOIN_TOKEN. The token ' +
        'also identifies\nthe coordinator to trust, so protect it like a password.',
    );
  },
  run: createToken,
};

async function createToken(context: Context, node: string, flags: CreateFlags): Promise<ExitCode> {
  const { io, clock, environment } = context;
  if (!isNodeName(node)) {
    throw usageError(
      `invalid node name "${node}": expected 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  const { answer, endpoint } = await withSession(context, flags, async (session) => ({
    answer: await session.api.createJoinToken(node, flags.replace),
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
    `For one agent named ${node}, valid for ${lifetime}, ${where}; it reads the token from its standard input:\n` +
      `  ${joinCommand(node, outside ?? endpoint.address)}\n`,
  );
  return exitCodes.ok;
}

/** Without the token: arguments are visible to every user of a machine, and shells keep what was typed. */
function joinCommand(node: string, coordinator: string): string {
  const place = `--data muster-${node} --name ${node} --coordinator ${coordinator}`;
  return `muster agent ${place} --join-token-file -`;
}
