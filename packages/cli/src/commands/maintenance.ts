import type { ClusterView } from '@muster/common/clusterView';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { durationMs } from '../flags.ts';
import { durationText } from '../output/times.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

interface MaintenanceFlags extends QueryFlags {
  readonly for?: number;
  readonly end?: boolean;
}

const shortestMs = 10_000;
const longestMs = 24 * 60 * 60_000;

export const command: CommandModule = {
  define(sub) {
    sub
      .option(
        '--for <duration>',
        'let tasks run this long without contact with the coordinator',
        durationMs('--for', shortestMs, longestMs),
      )
      .option('--end', 'return to the usual lease length');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nUse it before an outage of the coordinator or the network. Nodes get the longer lease with their next heartbeat. ' +
        'Jobs of a node that is lost meanwhile are rescheduled only after that lease, or after `muster node confirm-dead`.',
    );
  },
  run: maintain,
};

async function maintain(context: Context, flags: MaintenanceFlags): Promise<ExitCode> {
  if (flags.for !== undefined && flags.end === true)
    throw usageError('--for begins a maintenance and --end ends it; give one of them');
  const forMs = flags.end === true ? 0 : flags.for;
  return ask(
    context,
    flags,
    (api) => (forMs === undefined ? api.getCluster() : api.setMaintenance(forMs)),
    (cluster, { programName }) => `${forMs === 0 ? endedText : stateText(cluster, programName)}\n`,
  );
}

const endedText = 'The maintenance has ended; leases that were given in it last until their time.';

function stateText({ maintenanceMs }: ClusterView, programName: string): string {
  if (maintenanceMs === 0)
    return `There is no maintenance; begin one with: ${programName} maintenance --for 2h`;
  return `Leases last for ${durationText(maintenanceMs)} more; end that with: ${programName} maintenance --end`;
}
