/**
 * Containers that nobody watches, because their agent is uninstalled. Their processes are killed by their control groups,
 * whether or not an engine answers; what the engine knows of them is removed where it answers.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { taskKey } from '@muster/common/ids';
import { readInstanceId } from './dataDir/instance.ts';
import { readContainerGroups } from './drivers/docker/containerFences.ts';
import { containerName, labels } from './drivers/docker/containerSpec.ts';
import { Engine } from './drivers/docker/engine.ts';
import { ControlGroup } from './fence/controlGroup.ts';
import { killUntilGone } from './fence/freeze.ts';
import type { TaskLocation } from './taskFacts/execution.ts';
import { TaskRecords } from './tasks/records.ts';

export interface EndedContainers {
  /** Of tasks that ran as containers, as far as the agent has recorded them or the engine knows them. */
  readonly ended: number;
  /** Why the engine may still show them, ended; null: it does not. */
  readonly problem: string | null;
}

/** From the end of its processes to the engine's report of that. */
const endDeadlineMs = 30_000;

/**
 * Ends the containers of an agent that has been stopped.
 * @param dataDir of the agent, absolute
 * @throws {Error} when one of them could not be killed
 */
export async function endLeftContainers(dataDir: string, socketPath: string): Promise<EndedContainers> {
  if (!existsSync(join(dataDir, 'instance'))) return { ended: 0, problem: null };
  const records = new TaskRecords(join(dataDir, 'tasks'));
  const tasks = records
    .load()
    .filter(({ assignment }) => assignment.spec.image !== null)
    .map(({ assignment: { task } }) => ({ key: taskKey(task), directory: records.directory(task) }));
  const killed: string[] = [];
  for (const task of tasks) if (await killByGroups(task)) killed.push(task.key);
  try {
    const agentId = readInstanceId(dataDir);
    const known = existsSync(socketPath) ? await removeKnown(new Engine(socketPath), agentId) : [];
    return { ended: new Set([...killed, ...known]).size, problem: null };
  } catch (error) {
    return { ended: killed.length, problem: tasks.length === 0 ? null : messageOf(error) };
  }
}

/** @returns whether there was something to kill */
async function killByGroups(task: TaskLocation): Promise<boolean> {
  const groups = (readContainerGroups(task) ?? [])
    .filter((path) => existsSync(path))
    .map((path) => new ControlGroup(path))
    .filter((group) => !group.isEmpty());
  for (const group of groups)
    if (!(await killUntilGone(group)))
      throw new Error(`the container of task ${task.key} could not be killed`);
  return groups.length > 0;
}

/** @returns the tasks whose containers it had */
async function removeKnown(engine: Engine, agentId: string): Promise<readonly string[]> {
  const found = await engine.listContainers(`${labels.agent}=${agentId}`);
  const keys = found.map((each) => each[labels.task]).filter((key) => key !== undefined);
  for (const key of keys) {
    const container = await engine.inspectContainer(containerName(key));
    if (container === null) continue;
    if (container.phase === 'running') {
      await engine.killContainer(container.id, 'SIGKILL');
      await engine.waitForEnd(container.id, AbortSignal.timeout(endDeadlineMs));
    }
    await engine.removeContainer(container.id);
  }
  return keys;
}
