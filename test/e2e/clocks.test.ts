/** Clocks that are wrong by a day, and a cluster that was off for weeks. */
import { expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { stablePort } from '../support/places.ts';
import { waitFor } from '../support/services.ts';

const dayMs = 86_400_000;

test('nodes whose clocks are a day ahead or behind join over TLS, say so, and run jobs in the time of the coordinator', async () => {
  const aheadMs = { 'node-1': dayMs, 'node-2': -dayMs } as Readonly<Record<string, number>>;
  const beganMs = Date.now();
  const cluster = await startCluster({
    nodes: 2,
    coordinatorFlags: ['--listen', `0.0.0.0:${await stablePort()}`],
    clockAheadMs: (title) => aheadMs[title] ?? 0,
  });
  await waitFor('both say that their clocks are wrong', async () => {
    const nodes = await cluster.api.listNodes();
    return nodes.every(({ conditions }) => conditions.some(({ kind }) => kind === 'clock_skew'));
  });
  const job = await cluster.run({ command: 'date +%s', resources: { nodes: 2 } });
  expect(job).toMatchObject({ state: 'succeeded' });
  expect(job.endedAtMs).toBeGreaterThanOrEqual(beganMs);
  expect(job.endedAtMs).toBeLessThanOrEqual(Date.now());
});

test('a cluster that was off for three weeks names the nodes that must join anew, and runs jobs once they have', async () => {
  let aheadMs = -21 * dayMs;
  const cluster = await startCluster({
    nodes: 2,
    coordinatorFlags: ['--listen', `0.0.0.0:${await stablePort()}`],
    clockAheadMs: () => aheadMs,
    expectedComplaints: /certificate of node node-\d expired on/,
  });
  const daemons = [cluster.coordinator, ...cluster.agents];
  for (const daemon of daemons.toReversed()) await daemon.stop();

  aheadMs = 0;
  await cluster.coordinator.start();
  for (const agent of cluster.agents) {
    await agent.start();
    const { title } = agent.options;
    const remedy = `the certificate of node ${title} expired on .*: create a token with \`muster token create ${title} --replace\``;
    await waitFor(`${title} says why`, () => agent.log, { until: (log) => new RegExp(remedy).test(log) });
    // As docs/operations.md tells.
    await agent.stop();
    await cluster.letJoinAnew(agent);
    await agent.start();
  }
  await cluster.untilOnline();
  expect(await cluster.run({ command: 'true', resources: { nodes: 2 } })).toMatchObject({
    state: 'succeeded',
  });
});
