import type { ClusterView } from '@muster/common/views';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { formatNodes } from '../nodes/nodeText.ts';
import { orphansText } from '../nodes/orphanText.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { durationText } from '../output/times.ts';
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
  const { nodes, cluster } = await withSession(context, flags, async ({ api }) => ({
    nodes: await api.listNodes(),
    cluster: flags.output === 'json' ? null : await api.getCluster(),
  }));
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
  if (flags.output !== 'json') await io.stderr.write(orphansText(nodes, environment.programName));
  if (cluster !== null) await io.stderr.write(clusterNotes(cluster, environment.programName));
  return exitCodes.ok;
}

/** What is unusual about the cluster as a whole; empty when nothing is. */
function clusterNotes({ pausedBecause, maintenanceMs }: ClusterView, programName: string): string {
  const lines = [
    pausedBecause === '' ? null : `Nothing is started or rescheduled: ${printable(pausedBecause)}`,
    maintenanceMs === 0
      ? null
      : `Maintenance for ${durationText(maintenanceMs)} more; \`${programName} maintenance --end\` ends it`,
  ];
  return lines.map((line) => (line === null ? '' : `${line}.\n`)).join('');
}
