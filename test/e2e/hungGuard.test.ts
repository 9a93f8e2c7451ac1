/** A guard that is stopped answers nothing, and everything that it holds must stay in the hands of its owners. */
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2 });
});

const conditionsOf = async (name: string) =>
  (await cluster.api.listNodes())
    .filter((node) => node.name === name)
    .flatMap(({ conditions }) => conditions.map(({ kind }) => kind));

test('a node whose guard hangs says so, ends its tasks when asked, and gets no new work until it answers', async () => {
  const job = await cluster.submit({
    command:
      "trap 'echo saved; exit 0' TERM; echo ready; while :; do { sleep 0.1 & wait $!; } 2>/dev/null; done",
    stop_grace: '120s',
  });
  await cluster.untilOutput(job, 'ready\n');
  const node = (await cluster.api.getJob(job)).attempts[0]?.tasks[0]?.node ?? '';
  const agent = cluster.agents.find(({ options }) => options.title === node);
  const guard = agent === undefined ? null : cluster.guardPid(agent);
  if (guard === null) throw new Error(`no guard on ${node}`);
  process.kill(guard, 'SIGSTOP');
  try {
    await waitFor('the condition', () => conditionsOf(node), {
      until: (seen) => seen.includes('guard_silent'),
    });
    const { stdout } = await cluster.muster(['node', node]);
    expect(stdout).toContain(`pid ${guard} is stopped: kill -CONT ${guard}`);

    await cluster.api.stopJobs([job]);
    expect(await cluster.untilEnded(job)).toMatchObject({ state: 'cancelled' });
    expect(cluster.processesOf(job)).toEqual([]);
    expect(await cluster.output(job)).toBe('ready\nsaved\n');

    const next = await cluster.run({ command: 'echo elsewhere' });
    expect(next).toMatchObject({ state: 'succeeded', failures: 0 });
    expect(next.attempts.at(-1)?.tasks[0]?.node).not.toBe(node);
  } finally {
    process.kill(guard, 'SIGCONT');
  }
  await waitFor('the condition to end', () => conditionsOf(node), { until: (seen) => seen.length === 0 });
  const both = await cluster.run({ command: 'echo both', resources: { nodes: 2 } });
  expect(both).toMatchObject({ state: 'succeeded' });
});
