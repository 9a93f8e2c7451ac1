/**
 * The end of a cluster: every job is stopped, every process asked to leave. Whatever is left, ended unasked or complained
 * of itself is a fault of the product, also when every test has passed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { commandOf, processesNaming } from '../../scripts/processes.mjs';
import type { Daemon } from './daemon.ts';
import type { Cluster } from './runningCluster.ts';
import { dockerAnswers, dockerSocketPath, waitFor } from './services.ts';

/** Stops every job and every process. @returns what was wrong */
export async function closeCluster(cluster: Cluster): Promise<readonly string[]> {
  const problems: string[] = [];
  const attempt = async (step: () => Promise<void>) => {
    try {
      await step();
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  };
  await attempt(() => stopJobs(cluster));
  await attempt(() => untilNodesAreEmpty(cluster));
  await attempt(() => expectNoContainers(cluster));
  for (const agent of cluster.agents) await attempt(() => stopCleanly(agent));
  await attempt(() => stopCleanly(cluster.coordinator));
  await attempt(() => stopGuards(cluster));
  await attempt(() => expectNothingLeft(cluster));
  for (const daemon of cluster.daemons)
    problems.push(...daemon.unexpectedEnds, ...errorsOf(daemon, cluster.options.expectedErrors));
  return problems;
}

async function stopJobs(cluster: Cluster): Promise<void> {
  if (!cluster.coordinator.isRunning) await cluster.coordinator.start();
  for (const agent of cluster.agents) if (!agent.isRunning) await agent.start();
  await cluster.untilOnline();
  const { jobs } = await cluster.api.listJobs({
    states: ['queued', 'starting', 'running', 'stopping'],
    limit: 1000,
  });
  if (jobs.length > 0)
    await cluster.api.stopJobs(
      jobs.map(({ id }) => id),
      'the test is over',
    );
  await waitFor('all jobs have ended', async () => (await cluster.api.getCluster()).jobsActive, {
    until: (active) => active === 0,
  });
}

/** The coordinator has recorded every end and has all output, so the agents have let go of everything. */
async function untilNodesAreEmpty(cluster: Cluster): Promise<void> {
  const tasksLeft = () =>
    cluster.agents.flatMap((agent) => readdirSync(join(cluster.agentDataDir(agent), 'tasks')));
  await waitFor('the agents have let go of all tasks', tasksLeft, { until: (left) => left.length === 0 });
}

async function stopGuards(cluster: Cluster): Promise<void> {
  for (const agent of cluster.agents) {
    const pid = cluster.guardPid(agent);
    if (pid === null) continue;
    // A guard that still has tasks refuses, and is found below.
    process.kill(pid, 'SIGTERM');
  }
}

async function expectNothingLeft(cluster: Cluster): Promise<void> {
  const left = () => processesNaming(cluster.workDir).map((pid) => `${pid} ${commandOf(pid)}`);
  await waitFor('no process is left', left, { until: (seen) => seen.length === 0 });
}

/** To be asked while the agents still run: their disks may be gone with them. */
async function expectNoContainers(cluster: Cluster): Promise<void> {
  if (!(await dockerAnswers())) return;
  const instances = cluster.agents.map((agent) =>
    readFileSync(join(cluster.agentDataDir(agent), 'instance'), 'utf8').trim(),
  );
  const containers = () => Promise.all(instances.map(containersOf)).then((each) => each.flat());
  await waitFor('no container is left', containers, { until: (seen) => seen.length === 0 });
}

/** Stack traces, broken invariants and lines of level error: none of them belongs to any test. */
function errorsOf(daemon: Daemon, expected: RegExp | undefined): readonly string[] {
  return daemon.log
    .split('\n')
    .filter((line) => /^\s+at .+:\d+:\d+\)?$/.test(line) || /"level":[56]0|"guarantee"/.test(line))
    .filter((line) => expected?.test(line) !== true)
    .map((line) => `${daemon.options.title} said: ${line}`);
}

async function stopCleanly(daemon: Daemon): Promise<void> {
  if (!daemon.isRunning) return;
  const { title } = daemon.options;
  const { exitCode, signal } = await daemon.stop();
  if (exitCode !== 0)
    throw new Error(`${title} was asked to stop and ended with ${signal ?? `code ${exitCode}`}`);
}

/** Names of an agent's containers, running or not. */
function containersOf(agentInstance: string): Promise<readonly string[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`muster.agent=${agentInstance}`] }));
  return new Promise((resolve, reject) => {
    const query = request(
      { socketPath: dockerSocketPath, path: `/containers/json?all=1&filters=${filters}` },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => (text += part));
        answer.on('end', () =>
          resolve((JSON.parse(text) as { Names: string[] }[]).flatMap(({ Names }) => Names)),
        );
      },
    );
    query.on('error', reject).end();
  });
}
