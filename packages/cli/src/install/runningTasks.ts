/** Tasks of a node that is about to lose its agent. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { agentDefaults } from '@muster/agent/options';
import { messageOf } from '@muster/common/errors';
import { Command } from 'commander';
import { withAgentFlags } from '../agentFlags.ts';
import { readConfigFile } from '../config/configFile.ts';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { count } from '../output/text.ts';

/** How many tasks run on this node or are about to, as far as its agent has recorded them. @param dataDir of the agent, absolute */
export async function runningTasks(dataDir: string): Promise<number> {
  const place = join(dataDir, 'tasks');
  if (!existsSync(place)) return 0;
  const { TaskRecords } = await import('@muster/agent/tasks/records');
  return new TaskRecords(place).load().filter(({ phase }) => phase.kind !== 'ended').length;
}

/**
 * Ends the containers of an agent that has been stopped: they are children of the engine, and end with no unit.
 * @param dataDir of the agent, absolute
 * @param configPath of the agent
 * @returns how many there were @throws {CliError}
 */
export async function endContainers(
  dataDir: string,
  configPath: string,
  { io }: Pick<Context, 'io'>,
): Promise<number> {
  const { endLeftContainers } = await import('@muster/agent/leftContainers');
  const { ended, problem } = await endLeftContainers(dataDir, dockerSocketIn(configPath)).catch(
    (error: unknown) => {
      throw new CliError(`containers of tasks still run: ${messageOf(error)}`, {
        cause: error,
        hints: [
          'Which ones: docker ps --filter label=muster.task. The same command continues once they have ended.',
        ],
      });
    },
  );
  if (ended > 0) await io.stdout.write(`end ${count(ended, 'container')} of tasks\n`);
  if (problem !== null)
    await io.stderr.write(
      `Docker may still list ended containers (docker ps -a --filter label=muster.task): ${problem}\n`,
    );
  return ended;
}

/** The usual one also where the settings cannot be read: that is no reason to leave containers running. */
function dockerSocketIn(configPath: string): string {
  const agent = new Command('agent');
  withAgentFlags(agent);
  try {
    const found = readConfigFile(configPath, agent).find(({ key }) => key === 'docker_socket');
    return found?.values[0] ?? agentDefaults.dockerSocket;
  } catch (error) {
    if (error instanceof CliError) return agentDefaults.dockerSocket;
    throw error;
  }
}
