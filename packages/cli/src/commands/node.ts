import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { formatNode } from '../nodes/nodeText.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type NodeFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
  },
  run: showNode,
};

async function showNode(context: Context, name: string, flags: NodeFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const node = await withSession(context, flags, ({ api }) => api.getNode(name));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const colours = coloursFor(io.stdout, environment);
  await io.stdout.write(formatNode(node, { width: io.stdout.columns(), colours, nowMs: clock.wallMs() }));
  return exitCodes.ok;
}
