/** The store's life in an operator's hands: checked, copied while it is at work, restored, damaged, accepted. */
import { readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 1 });
});

const offline = (...words: readonly string[]) =>
  cluster.muster(['store', ...words, '--data', cluster.dataDir, '-o', 'json']);

test('a backup that is taken while jobs run is restored, and the cluster goes on with it', async () => {
  const before = await cluster.submit({ command: 'true' });
  await cluster.untilEnded(before);
  const file = join(cluster.workDir, 'backup');
  const taken = await cluster.muster(['store', 'backup', file]);
  expect(taken).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/read back and is intact/) });
  const lost = await cluster.submit({ command: 'true' });
  await cluster.untilEnded(lost);
  expect(await offline('check')).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining('another coordinator is using'),
  });

  await cluster.coordinator.stop();
  const checked = await offline('check');
  expect(JSON.parse(checked.stdout)).toMatchObject({ ok: true, findings: [], contents: { jobs: 2 } });
  const restored = await offline('restore', file);
  expect(JSON.parse(restored.stdout)).toMatchObject({ lostJobs: 1 });
  await cluster.coordinator.start();
  await cluster.untilOnline();

  const { jobs } = await cluster.api.listJobs();
  expect(jobs.map(({ id }) => id)).toEqual([before]);
  const events: string[] = [];
  for await (const { kind } of cluster.api.watchEvents({ sinceSeq: 0, follow: false, subject: 'cluster' }))
    events.push(kind);
  expect(events).toContain('store.restored');
});

test('a store that lost commits with a kill is refused until it is accepted', async () => {
  for (let job = 0; job < 5; job += 1) await cluster.submit({ command: 'true' });
  await cluster.coordinator.kill();
  const log = join(cluster.dataDir, 'muster.db-wal');
  truncateSync(log, Math.floor(readFileSync(log).length / 2));

  const listen = ['coordinator', '--data', cluster.dataDir, '--listen', '127.0.0.1:0'];
  const refused = await cluster.muster(listen);
  expect(refused.exitCode).not.toBe(0);
  expect(refused.stderr).toMatch(/lost acknowledged commits.*muster store check.*muster store accept/s);
  const checked = await offline('check');
  expect(checked.exitCode).not.toBe(0);
  expect(JSON.parse(checked.stdout)).toMatchObject({ ok: false, findings: [{ kind: 'behind' }] });

  const accepted = await offline('accept');
  expect(JSON.parse(accepted.stdout).lostEvents).toBeGreaterThan(0);
  await cluster.coordinator.start();
  await cluster.untilOnline();
  expect(await cluster.muster(['nodes'])).toMatchObject({ exitCode: 0 });
});
