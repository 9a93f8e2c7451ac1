/**
 * Copies of an agent's data directory that are started beside the original, at random moments and in random order: no
 * attempt starts twice, one of the two works on, and the other one is shown. With MUSTER_TEST_TRIALS=full there are more.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFailed, test } from 'vitest';
import { type Chance, seededChance } from '../support/chance.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { Daemon } from '../support/daemon.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

const trials = trialsOf(20, 3);
/** A join token that no coordinator knows. An agent that has joined continues without it. */
const spentToken = `muster_join_${'x'.repeat(43)}`;

/** Each start of an attempt adds a line, whichever agent starts it. */
const job = (starts: string) => ({
  name: 'once',
  command: `echo $MUSTER_JOB_ID.$MUSTER_ATTEMPT >> ${starts}; sleep 2`,
  resources: { cpus: 1 },
  retry: { max_attempts: 20 },
});

function expectNothingTwice(starts: string): void {
  const lines = readFileSync(starts, 'utf8').trim().split('\n');
  expect(lines.filter((line, index) => lines.indexOf(line) !== index)).toEqual([]);
}

async function killGuard(cluster: Cluster, agent: Daemon): Promise<void> {
  const pid = cluster.guardPid(agent);
  if (pid === null) return;
  process.kill(pid, 'SIGKILL');
  await waitFor('the guard is gone', () => cluster.guardPid(agent) === null);
}

/** Starts a daemon that may be refused for good, which ends it. */
async function startIfAdmitted(agent: Daemon): Promise<void> {
  await agent.start().catch(() => {});
}

async function trial(cluster: Cluster, chance: Chance, number: number, starts: string): Promise<void> {
  const original = cluster.agent(0);
  const from = cluster.agentDataDir(original);
  const copied = join(cluster.agentsDir, `copy-${number}`);
  const isLive = chance.integer(0, 2) === 0;
  await delay(chance.integer(0, 1_500));
  if (!isLive) {
    await original.kill();
    if (chance.integer(0, 1) === 0) await killGuard(cluster, original);
  }
  cpSync(from, copied, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  const copy = cluster.addAgent(`copy-${number}`, spentToken);
  const order = chance.integer(0, 1) === 0 ? [original, copy] : [copy, original];
  for (const each of order) {
    if (!each.isRunning) await startIfAdmitted(each);
    await delay(chance.integer(0, 300));
  }
  const shown = async () => (await cluster.api.getNode('node-1')).conditions.map(({ kind }) => kind);
  await waitFor('the condition', shown, { until: (kinds) => kinds.includes('duplicate_identity') });
  await delay(chance.integer(500, 3_000));
  expectNothingTwice(starts);
  // The copy goes; the original is node-1 again, if need be by the word of an admin.
  await copy.kill();
  copy.unexpectedEnds.length = 0;
  if (!original.isRunning) await original.start();
  original.unexpectedEnds.length = 0;
  await cluster.letJoinAnew(original);
  await original.restart();
  await cluster.untilOnline([original]);
  await killGuard(cluster, copy);
  cluster.agents.splice(cluster.agents.indexOf(copy), 1);
  rmSync(copied, { recursive: true, force: true });
}

test(`of ${trials} copies none starts an attempt that the original has started`, async () => {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const cluster = await startCluster({
    agentFlags: (name) => (name.startsWith('copy-') ? ['--name', 'node-1'] : []),
    expectedErrors: /duplicate_identity|refuses this agent|continuity/,
  });
  const starts = join(cluster.workDir, 'starts');
  writeFileSync(starts, '');
  for (let number = 0; number < trials; number += 1) {
    const ids = await Promise.all(Array.from({ length: 4 }, () => cluster.submit(job(starts))));
    await trial(cluster, chance, number, starts);
    for (const id of ids) {
      const { state, cause } = await cluster.untilEnded(id);
      // The exit status of a task whose guard was killed is unknown, and is shown as that.
      expect(state === 'succeeded' || cause?.kind === 'unknown', `${id} ${state} ${cause?.message}`).toBe(
        true,
      );
    }
    expectNothingTwice(starts);
  }
});
