/** What is started on a node, by the job's launcher: the command itself, or a few lines of shell around it. */
import type { JobSpec } from '@muster/common/spec/types';
import { DriverError } from '../taskFacts/errors.ts';
import { placeholderScript, processPerGpuScript, ranksScript } from './launcherScripts.ts';

const shell = '/bin/sh';

/**
 * @param processes on this node, at least 1
 * @throws {DriverError} for a launcher that cannot start the job's command
 */
export function launchCommand(spec: JobSpec, nodeRank: number, processes: number): readonly string[] {
  const command = [...spec.command, ...spec.args];
  switch (spec.launcher) {
    case 'torchrun':
      return command;
    case 'mpi-hostfile':
      return nodeRank === 0 ? command : [shell, '-c', placeholderScript, 'muster-placeholder'];
    case 'env': {
      if (command.length === 0) {
        throw new DriverError(
          'command_not_found',
          'launcher: env starts a command once per GPU, and the job names none: add a `command`, ' +
            "because the image's own cannot be seen from outside",
        );
      }
      const numbers = [processes, nodeRank * processes, Math.ceil(spec.stopGraceMs / 1_000)].map(String);
      return [shell, '-c', processPerGpuScript, 'muster-ranks', ranksScript, ...numbers, ...command];
    }
    default: {
      const never: never = spec.launcher;
      return never;
    }
  }
}
