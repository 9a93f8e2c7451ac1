/** The end of a cluster of hosts, in the order in which nothing can hide: faults undone, jobs stopped, daemons asked to leave. */
import { waitFor } from '../services.ts';
import type { GangCluster } from './gangCluster.ts';
import type { HostProcess } from './hostProcess.ts';

/** @returns what was wrong */
export async function closeGangCluster(cluster: GangCluster): Promise<readonly string[]> {
  const problems: string[] = [];
  const attempt = async (step: () => void | Promise<void>) => {
    try {
      await step();
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  };
  await attempt(() => stopJobs(cluster));
  await attempt(() => expectNoForeignProcesses(cluster));
  await Promise.all(cluster.hosts.map(({ agent }) => attempt(() => stopCleanly(agent))));
  await attempt(() => stopCleanly(cluster.coordinator));
  await attempt(() => cluster.closeConnections());
  await attempt(() => cluster.room.remove());
  for (const each of cluster.processes) {
    problems.push(...each.unexpectedEnds, ...errorsOf(each, cluster.options.expectedErrors));
  }
  return problems;
}

async function stopJobs(cluster: GangCluster): Promise<void> {
  if (!cluster.coordinator.isRunning) await cluster.coordinator.start();
  for (const { agent } of cluster.hosts) if (!agent.isRunning) await agent.start();
  await cluster.untilOnline();
  const { jobs } = await cluster.api.listJobs({
    states: ['queued', 'starting', 'running', 'stopping'],
    limit: 1000,
  });
  const ids = jobs.map(({ id }) => id);
  if (ids.length > 0) await cluster.api.stopJobs(ids, 'the test is over');
  await waitFor('all jobs have ended', async () => (await cluster.api.getCluster()).jobsActive, {
    until: (active) => active === 0,
  });
}

/** With all jobs ended a host has its first process, its agent and its guard; also what has cleared its environment shows. */
async function expectNoForeignProcesses(cluster: GangCluster): Promise<void> {
  const foreignProcesses = () =>
    cluster.hosts.flatMap((host) => host.foreignProcesses().map((found) => `${host.name}: ${found}`));
  await waitFor('no process of a job is left on any host', foreignProcesses, {
    until: (seen) => seen.length === 0,
  });
}

async function stopCleanly(daemon: HostProcess): Promise<void> {
  if (!daemon.isRunning) return;
  const { exitCode, signal } = await daemon.stop();
  if (exitCode === 0) return;
  throw new Error(`${daemon.options.title} was asked to stop and ended with ${signal ?? `code ${exitCode}`}`);
}

/** Stack traces, broken invariants and lines of level error: none of them belongs to any test. */
function errorsOf(daemon: HostProcess, expected: RegExp | undefined): readonly string[] {
  return daemon.log
    .split('\n')
    .filter((line) => /^\s+at .+:\d+:\d+\)?$/.test(line) || /"level":[56]0|"guarantee"/.test(line))
    .filter((line) => expected?.test(line) !== true)
    .map((line) => `${daemon.options.title} said: ${line}`);
}
