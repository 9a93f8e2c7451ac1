/**
 * Clusters for tests. At the end of the test file each is stopped the polite way, and the file fails if anything is left
 * behind, ended unasked, or complained of itself. When a test fails, what the daemons said during it is shown.
 */
import { afterAll, afterEach, beforeEach } from 'vitest';
import { closeCluster } from './closing.ts';
import { stablePort } from './places.ts';
import { Cluster, type ClusterOptions } from './runningCluster.ts';

export type { Cluster, Spec } from './runningCluster.ts';

const open: Cluster[] = [];

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = new Cluster(options, await stablePort());
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
  for (const cluster of open.splice(0)) problems.push(...(await closeCluster(cluster)));
  if (problems.length > 0) throw new Error(`the cluster was not left clean:\n${problems.join('\n')}`);
});
