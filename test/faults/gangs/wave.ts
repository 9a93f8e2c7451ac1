/**
 * A wave is what one test does to many gangs at once. All waves share one cluster, because so many agents take their time to
 * start, and none depends on how an earlier one went: each begins on hosts that work, with nothing on them.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { signalProcess } from '../../support/hosts/programs.ts';
import { waitFor } from '../../support/services.ts';

/**
 * @param name of its directory for signs of life: what is read again and again stays small
 * @param play gets the path of that directory
 */
export async function playAlone<T>(
  cluster: GangCluster,
  name: string,
  play: (beatsDir: string) => Promise<T>,
): Promise<T> {
  await repair(cluster);
  await stopAllJobs(cluster);
  await runGangOfAllHosts(cluster);
  const beatsDir = join(cluster.sharedDir, name);
  mkdirSync(beatsDir);
  return play(beatsDir);
}

/** Takes back every fault that a wave can have left, whatever stopped it from doing so itself. */
async function repair(cluster: GangCluster): Promise<void> {
  await resumeOrStart(cluster.coordinator);
  await Promise.all(cluster.hosts.map(repairHost));
  await cluster.untilOnline();
}

async function repairHost(host: Host): Promise<void> {
  if (host.machine.initPid === null) return host.boot();
  await host.unpause();
  await host.onNetwork(['iptables', '--wait', '--flush']);
  const guard = host.guardPid();
  if (guard !== null) signalProcess(guard, 'SIGCONT');
  return resumeOrStart(host.agent);
}

async function resumeOrStart(daemon: Host['agent']): Promise<void> {
  if (daemon.isRunning) daemon.resume();
  else await daemon.start();
}

async function stopAllJobs(cluster: GangCluster): Promise<void> {
  const states = ['queued', 'starting', 'running', 'stopping'] as const;
  const { jobs } = await cluster.api.listJobs({ states: [...states], limit: 1000 });
  const jobIds = jobs.map(({ id }) => id);
  if (jobIds.length === 0) return;
  await cluster.api.stopJobs(jobIds);
  await Promise.all(jobIds.map((id) => cluster.untilEnded(id)));
  await untilNothingIsLeft(cluster, jobIds);
}

/** Nodes that were away have their paths measured by it, and each gets a guard: no later gang is held up by either. */
async function runGangOfAllHosts(cluster: GangCluster): Promise<void> {
  const jobId = await cluster.submit({
    command: 'true',
    env: { PATH: cluster.sharedDir },
    resources: { nodes: cluster.hosts.length },
  });
  const { state, attempts } = await cluster.untilEnded(jobId);
  if (state !== 'succeeded') throw new Error(`a gang of all hosts is ${state}: ${JSON.stringify(attempts)}`);
}

/** Waits until no process of the jobs runs on any host, and no GPU is allocated. */
export async function untilNothingIsLeft(cluster: GangCluster, jobIds: readonly string[]): Promise<void> {
  await waitFor('no process of a job is left', () => jobIds.flatMap((id) => cluster.processesOf(id)), {
    until: (left) => left.length === 0,
  });
  const gpuUses = async () => (await cluster.api.listNodes()).flatMap(({ gpuUses: uses }) => uses);
  await waitFor('no GPU is allocated', gpuUses, { until: (uses) => uses.length === 0 });
}
