/** After a restore from a backup: tasks that the store does not know are seen, counted, and ended by one command. */
import { join } from 'node:path';
import type { NodeView } from '@muster/common/views';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 1, gpus: 2 });
});

test('a restore leaves no task unseen and no GPU held for ever', async () => {
  const file = join(cluster.workDir, 'backup');
  expect(await cluster.muster(['backup', file])).toMatchObject({ exitCode: 0 });
  const resources = { gpus: 2 };
  const lost = await cluster.submit({ name: 'lost', command: 'echo up; sleep 600', resources });
  await cluster.untilOutput(lost, 'up');
  await cluster.coordinator.stop();
  const restored = await cluster.muster(['restore', file, '--force', '--data', cluster.dataDir]);
  expect(restored.exitCode, restored.stderr).toBe(0);
  await cluster.coordinator.start();
  await cluster.untilOnline();

  // 1. It is named where one looks, and its GPUs are in use.
  const advanced = await cluster.muster(['store', 'advance']);
  expect(advanced.stdout).toContain('1 task runs on node-1 that the store does not know, holding 2 GPUs:');
  expect(advanced.stdout).toMatch(new RegExp(`${lost}  lost  attempt 1  node rank 0  2 GPUs`));
  expect(advanced.stdout).toContain('muster node end-orphans node-1\n');
  const nodes = await cluster.muster(['nodes']);
  expect(nodes.stdout).toMatch(new RegExp(`node-1 +online.* 2/2 .*${lost} \\(orphan\\)`));
  expect(nodes.stderr).toContain('muster node end-orphans node-1\n');

  // 2. A job that needs them waits, and says for what. The store starts nothing before leases have ended.
  const next = await cluster.submit({ name: 'next', command: 'echo done', resources });
  await waitFor('the reason', () => cluster.muster(['explain', next]), {
    intervalMs: 500,
    until: ({ stdout }) => stdout.includes('2 GPUs of node-1 held by tasks unknown to the store'),
  });
  expect((await cluster.api.getJob(next)).attempts).toEqual([]);
  expect(cluster.processesOf(lost).length).toBeGreaterThan(0);

  // 3. One command ends it.
  const ended = await cluster.muster(['node', 'end-orphans', 'node-1']);
  expect(ended.exitCode, ended.stderr).toBe(0);
  expect(ended.stdout).toMatch(new RegExp(`^1 orphan has ended on node-1:\n  ${lost}  lost`));
  expect(cluster.processesOf(lost)).toEqual([]);
  expect(await cluster.untilEnded(next)).toMatchObject({ state: 'succeeded' });
  const shown = await cluster.muster(['node', 'node-1', '-o', 'json']);
  expect(JSON.parse(shown.stdout) as NodeView).toMatchObject({ orphans: [], gpuUses: [] });
});
