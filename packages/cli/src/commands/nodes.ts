import type { ClusterView } from '@muster/common/clusterView';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { formatNodes, orphansText } from '../nodes/nodeText.ts';
import { printable } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

export const command: CommandModule = {
  define: withQuery,
  run: listNodes,
};

async function listNodes(context: Context, flags: QueryFlags): Promise<ExitCode> {
  const { nodes, cluster } = await withSession(context, flags, async ({ api }) => ({
    nodes: await api.listNodes(),
    cluster: flags.output === 'json' ? null : await api.getCluster(),
  }));
  return print(
    context,
    flags,
    { nodes },
    (_answer, view) => (nodes.length === 0 ? '' : formatNodes(nodes, view)),
    (_answer, { programName }) =>
      (nodes.length === 0
        ? `No node yet. \`${programName} token create NAME\` makes a token for an agent.\n`
        : '') +
      orphansText(nodes, programName) +
      (cluster === null ? '' : clusterNotes(cluster, programName)),
  );
}

/** What is unusual about the cluster as a whole; empty when nothing is. */
function clusterNotes(
  { pausedBecause, maintenanceMs, clockProblem }: ClusterView,
  programName: string,
): string {
  const lines = [
    clockProblem === '' ? null : printable(clockProblem),
    pausedBecause === '' ? null : `Nothing is started or rescheduled: ${printable(pausedBecause)}`,
    maintenanceMs === 0
      ? null
      : `Maintenance for ${durationText(maintenanceMs)} more; \`${programName} maintenance --end\` ends it`,
  ];
  return lines.map((line) => (line === null ? '' : `${line}.\n`)).join('');
}
