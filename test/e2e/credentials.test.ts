/** How certificates of real agents end, are replaced and are renewed. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { credentialOfAgent } from '../support/callRules.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { stablePort } from '../support/places.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({
    nodes: 1,
    coordinatorFlags: ['--listen', `0.0.0.0:${await stablePort()}`, '--credential-lifetime', '30s'],
    // What an agent reports when it is removed, or replaced by a new installation.
    expectedErrors:
      /has been revoked or replaced|certificate is unknown to this coordinator|no certificate of a node|node-1 expired on/,
  });
});

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';
const renewals = async () =>
  (await cluster.events('cluster')).filter(({ kind }) => kind === 'token.renewed').length;

test('credentials are renewed again and again while a task runs, and a restarted agent shows the newest', async () => {
  const first = credentialOfAgent(cluster, 'node-1');
  const jobId = await cluster.submit({ command: `echo ready; ${idle}` });
  await cluster.untilOutput(jobId, 'ready\n');
  const { pid } = cluster.agent(0);
  await waitFor('a renewal', async () => (await renewals()) >= 1);
  expect(cluster.agent(0).pid).toBe(pid);
  expect(credentialOfAgent(cluster, 'node-1')).not.toEqual(first);
  await cluster.agent(0).stop();
  await cluster.agent(0).start();
  await cluster.untilOnline();
  expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running', attempts: { length: 1 } });
  await cluster.api.stopJobs([jobId]);
  await cluster.untilEnded(jobId);
});

test('a node that was off for longer than its certificate is good says so, and joins again by a token', async () => {
  const agent = cluster.agent(0);
  await agent.stop();
  const expired = async () => {
    const own = (await cluster.api.listCredentials()).find(({ kind }) => kind === 'agent');
    return (own?.expiresAtMs ?? 0) < Date.now();
  };
  await waitFor('the certificate has expired', expired);
  await agent.start();
  await waitFor('the agent says why', () => agent.log, {
    until: (log) =>
      /the certificate of node node-1 expired on .*: create a token with `muster token create node-1 --replace`/.test(
        log,
      ),
  });
  await cluster.letJoinAnew(agent);
  await agent.restart();
  await cluster.untilOnline();
  expect(await cluster.run({ command: 'true' })).toMatchObject({ state: 'succeeded' });
});

test('a machine that was installed anew returns under its name', async () => {
  await cluster.agent(0).stop();
  rmSync(join(cluster.agentsDir, 'node-1'), { recursive: true });
  await expect(cluster.api.createJoinToken('node-1')).rejects.toThrow(/--replace/);
  const { stdout } = await cluster.muster(['token', 'create', 'node-1', '--replace']);
  cluster.agents.pop();
  const anew = cluster.addAgent('node-1', stdout.trim());
  await anew.start();
  await cluster.untilOnline();
  expect(await cluster.run({ command: 'true' })).toMatchObject({ state: 'succeeded' });
  const agents = (await cluster.api.listCredentials()).filter(({ kind }) => kind === 'agent');
  expect(agents).toMatchObject([{ node: 'node-1' }]);
});

test('a node that is removed is shown by nobody, and its agent is let in no more', async () => {
  const removed = await cluster.muster(['node', 'remove', 'node-1']);
  expect(removed.exitCode, removed.stderr).toBe(0);
  expect(await cluster.api.listNodes()).toEqual([]);
  const refused = /a call was refused.*|.*AgentHub\/Session.*unauthenticated/;
  await waitFor('a refusal in the log', async () =>
    refused.test(readFileSync(cluster.coordinator.options.logPath, 'utf8')),
  );
  expect(await cluster.api.listNodes()).toEqual([]);
  // It waits for a coordinator that takes it back.
  expect(cluster.agent(0).isRunning).toBe(true);
  await cluster.agent(0).stop();
  cluster.agents.pop();
});
