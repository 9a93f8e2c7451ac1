import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** How many tasks run on this node or are about to, as far as its agent has recorded them. @param dataDir of the agent, absolute */
export async function runningTasks(dataDir: string): Promise<number> {
  const place = join(dataDir, 'tasks');
  if (!existsSync(place)) return 0;
  const { TaskRecords } = await import('@muster/agent/tasks/records');
  return new TaskRecords(place).load().filter(({ phase }) => phase.kind !== 'ended').length;
}
