/**
 * At the end of the test file every job is stopped and every daemon asked to leave; the file fails if anything is left,
 * ended unasked or complained of itself. The hosts go away in any case. When a test fails, what the daemons said during
 * it is shown.
 */
import { afterAll, afterEach, beforeEach } from 'vitest';
import { closeGangCluster } from './closing.ts';
import { GangCluster, type GangClusterOptions } from './gangCluster.ts';
import type { MachineRoom } from './machine.ts';

const open: GangCluster[] = [];

export async function openGangCluster(room: MachineRoom, options: GangClusterOptions): Promise<GangCluster> {
  const cluster = new GangCluster(room, options);
  open.push(cluster);
  await cluster.start();
  return cluster;
}

beforeEach(() => {
  for (const cluster of open) cluster.markLogs();
});
afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return;
  for (const cluster of open) process.stderr.write(cluster.logsSinceMark());
});
afterAll(async () => {
  const problems: string[] = [];
  for (const cluster of open.splice(0)) problems.push(...(await closeGangCluster(cluster)));
  if (problems.length > 0) throw new Error(`the hosts were not left clean:\n${problems.join('\n')}`);
});
