/**
 * Gangs of two that only beat, several at a time on one cluster. Hosts have one GPU each, so no two gangs share a host:
 * what is done to a host is done to one gang. A gang's first attempt runs until it is stopped, later ones end by themselves
 * and make room.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { JobSpecFile } from '@muster/common/spec/types';
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { startNamespaceCluster } from '../../support/hosts/namespaceHosts.ts';
import { waitFor } from '../../support/services.ts';
import { trialsOf } from '../../support/trials.ts';
import { leaseTimes } from './gangHistory.ts';
import { untilNothingIsLeft } from './wave.ts';

export interface Gang {
  readonly jobId: string;
  /** Of its first attempt, by node rank. */
  readonly hosts: readonly [Host, Host];
}

/** As many gangs at once, each with one host in trouble, leave most hosts silent at no time. Each host costs an agent. */
export const gangsAtOnce: number = trialsOf(12, 7);
const sizeOfGang = 2;
/** For the first of those that have to move; the others follow as soon as they have ended. */
const spareHosts = 2;

export function startClusterOfGangs(expectedErrors?: RegExp): Promise<GangCluster> {
  return startNamespaceCluster({
    hosts: gangsAtOnce * sizeOfGang + spareHosts,
    gpus: 1,
    lease: `${leaseTimes.leaseMs}ms`,
    coordinatorFlags: ['--fence-time', '2s', '--fence-margin', '2s'],
    ...(expectedErrors === undefined ? {} : { expectedErrors }),
  });
}

/** @param before shell commands in front of the beating, such as a trap */
export function beatingSpec(cluster: GangCluster, beatsDir: string, before = ''): JobSpecFile {
  const beat = `/usr/bin/python3 ${cluster.program('signOfLife.py')} ${beatsDir}`;
  return {
    command: `${before} if [ "$MUSTER_ATTEMPT" = 1 ]; then exec ${beat}; else exec ${beat} 1; fi`,
    // No python3 to be found: hosts that were away are measured by their agents, in a moment, and not with PyTorch.
    env: { PATH: cluster.sharedDir },
    resources: { nodes: sizeOfGang, gpus: 1 },
    stop_grace: '2s',
    retry: { max_attempts: 5, backoff: { initial: '100ms', max: '100ms' } },
  };
}

export function gangOf(cluster: GangCluster, job: JobView): Gang {
  const [first, second] = job.attempts[0]?.tasks ?? [];
  if (first === undefined || second === undefined) throw new Error(`${job.id} has not been allocated`);
  return { jobId: job.id, hosts: [cluster.host(first.node), cluster.host(second.node)] };
}

/** @throws {Error} when it has none */
export function guardOf(host: Host): number {
  const pid = host.guardPid();
  if (pid === null) throw new Error(`${host.name} has no guard`);
  return pid;
}

/** @returns once every rank of each beats */
export async function startGangs(
  cluster: GangCluster,
  beatsDir: string,
  count: number,
): Promise<readonly Gang[]> {
  const spec = beatingSpec(cluster, beatsDir);
  const jobIds = await Promise.all(Array.from({ length: count }, () => cluster.submit(spec)));
  const jobs = await Promise.all(
    jobIds.map((jobId) => cluster.untilJob(jobId, 'is running', ({ state }) => state === 'running')),
  );
  for (const { id } of jobs) await untilBeating(beatsDir, id);
  return jobs.map((job) => gangOf(cluster, job));
}

/** Waits until every rank of the first attempt of a job has shown a sign of life. */
export async function untilBeating(beatsDir: string, jobId: string): Promise<void> {
  await waitFor(`both ranks of ${jobId} beat`, () => bytesByRank(beatsDir, jobId), {
    until: (sizes) => sizes.every((size) => size > 0),
  });
}

/**
 * Waits until it is certain what became of each job after its trouble: it has ended, or every rank of its first attempt has
 * shown another sign of life since the wait began. A gang that moves is waited for: its later attempts end by themselves.
 */
export async function untilSettled(
  cluster: GangCluster,
  beatsDir: string,
  jobIds: readonly string[],
): Promise<void> {
  await Promise.all(
    jobIds.map((jobId) => {
      const before = bytesByRank(beatsDir, jobId);
      const goesOn = () => bytesByRank(beatsDir, jobId).every((size, rank) => size > (before[rank] ?? 0));
      return cluster.untilJob(
        jobId,
        'has ended or goes on in its first attempt',
        ({ state, attempts }) =>
          isTerminal(state) || (attempts.length === 1 && state === 'running' && goesOn()),
      );
    }),
  );
}

function bytesByRank(beatsDir: string, jobId: string): readonly number[] {
  return [0, 1].map((rank) => bytesOf(beatsDir, jobId, rank));
}

function bytesOf(beatsDir: string, jobId: string, rank: number): number {
  return readdirSync(beatsDir)
    .filter((name) => name.startsWith(`${jobId}.1.${rank}.`))
    .reduce((bytes, name) => bytes + statSync(join(beatsDir, name)).size, 0);
}

export interface EndedGang {
  readonly job: JobView;
  /** By this test, while it had not ended. */
  readonly wasStopped: boolean;
}

/** Stops what still runs, and waits until no process and no allocation of any of the jobs is left. */
export async function endGangs(
  cluster: GangCluster,
  jobIds: readonly string[],
): Promise<readonly EndedGang[]> {
  const open = await Promise.all(jobIds.map((id) => cluster.api.getJob(id)));
  const toStop = open.filter(({ state }) => !isTerminal(state)).map(({ id }) => id);
  if (toStop.length > 0) await cluster.api.stopJobs(toStop);
  const jobs = await Promise.all(jobIds.map((id) => cluster.untilEnded(id)));
  await untilNothingIsLeft(cluster, jobIds);
  return jobs.map((job) => ({ job, wasStopped: toStop.includes(job.id) }));
}
