/**
 * Programs of this tree beside those of an earlier commit, as they meet while a cluster is upgraded: each of coordinator, agent
 * and client is the older one in turn.
 */
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { musterProgram } from '../support/command.ts';
import { earlierProgram, noEarlierCommit } from '../support/earlierBuild.ts';

let earlier: string | null;
beforeAll(async () => {
  earlier = await earlierProgram();
});

async function echoes(cluster: Cluster, program: string, word: string): Promise<void> {
  const { exitCode, stdout, stderr } = await cluster.muster(['submit', '--follow', '--', 'echo', word], {
    program,
  });
  expect([exitCode, stdout], stderr).toEqual([0, expect.stringContaining(`${word}\n`)]);
}

test('a cluster is upgraded coordinator first, and a task runs through all of it', async ({ skip }) => {
  const older = earlier ?? skip(noEarlierCommit);
  const programs = new Map<string, string>();
  const cluster = await startCluster({ programOf: (title) => programs.get(title) ?? older });
  const agent = cluster.agent(0);
  const jobId = await cluster.submit({ name: 'long', command: ['sleep', '100000'] });
  await cluster.until(jobId, 'running');
  const before = cluster.processesOf(jobId);

  // The store of the older coordinator, and the older agent and client.
  await cluster.coordinator.stop();
  programs.set('coordinator', musterProgram);
  await cluster.coordinator.start();
  await cluster.untilOnline();
  await echoes(cluster, older, 'older client, older agent');
  await echoes(cluster, musterProgram, 'older agent');

  // The newer agent finds the task of the older one, whose guard still runs.
  await agent.stop();
  programs.set(agent.options.title, musterProgram);
  await agent.start();
  await cluster.untilOnline();
  await echoes(cluster, older, 'older client');
  expect(cluster.processesOf(jobId)).toEqual(before);
  expect((await cluster.api.getJob(jobId)).state).toBe('running');
});

test('a newer agent and a newer client work with an older coordinator', async ({ skip }) => {
  const older = earlier ?? skip(noEarlierCommit);
  const cluster = await startCluster({
    programOf: (title) => (title === 'coordinator' ? older : musterProgram),
  });
  await echoes(cluster, musterProgram, 'newer client, newer agent');
  await echoes(cluster, older, 'newer agent');
});
