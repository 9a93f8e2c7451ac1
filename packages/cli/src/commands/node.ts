import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { formatNode } from '../nodes/nodeDetail.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';
import { nodeClear } from './nodeClear.ts';
import { nodeConfirmDead } from './nodeConfirmDead.ts';
import { nodeDrain, nodeUndrain } from './nodeDrain.ts';
import { nodeEndOrphans } from './nodeEndOrphans.ts';
import { nodeRemove } from './nodeRemove.ts';

type NodeFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
    // They read as they are typed; the price is some odd names.
    sub.addHelpText('after', '\nTo see a node with the name of a subcommand, use `muster nodes -o json`.');
  },
  run: showNode,
  subcommands: [nodeDrain, nodeUndrain, nodeClear, nodeConfirmDead, nodeEndOrphans, nodeRemove],
};

async function showNode(context: Context, name: string, flags: NodeFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const node = await withSession(context, flags, ({ api }) => api.getNode(name));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const text = formatNode(node, {
    width: io.stdout.columns(),
    colours: coloursFor(io.stdout, environment),
    nowMs: clock.wallMs(),
    programName: environment.programName,
  });
  await io.stdout.write(text);
  return exitCodes.ok;
}
