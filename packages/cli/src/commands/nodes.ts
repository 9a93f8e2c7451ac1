import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { formatNodes } from '../nodes/nodeText.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type NodesFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    withConnection(withOutput(sub));
  },
  run: listNodes,
};

async function listNodes(context: Context, flags: NodesFlags): Promise<ExitCode> {
  const { io, environment } = context;
  const nodes = await withSession(context, flags, ({ api }) => api.listNodes());
  if (flags.output === 'json') {
    await writeJson(io.stdout, { nodes });
  } else if (nodes.length === 0) {
    await io.stderr.write(
      `No node yet. \`${environment.programName} token create NAME\` makes a token for an agent.\n`,
    );
  } else {
    const colours = coloursFor(io.stdout, environment);
    await io.stdout.write(formatNodes(nodes, { width: io.stdout.columns(), colours }));
  }
  return exitCodes.ok;
}
