/** Plays one scenario on a cluster of hosts and holds its end against what was expected. */
import type { JobSpecFile } from '@muster/common/spec/types';
import type { JobView } from '@muster/common/views';
import { expect } from 'vitest';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { signalProcess } from '../../support/hosts/programs.ts';
import { type Beat, boottimeMs, readBeats, violations } from '../../support/hosts/signOfLife.ts';
import { waitFor } from '../../support/services.ts';
import type { AttemptEnd, Fault, Scenario } from './scenarios.ts';

/** Milliseconds from the fault (without one: from the submit): for reports, never asserted. */
export interface Played {
  /** To the last sign of life of its ranks. null: there was a fault that they survive, or another attempt. */
  readonly goneAfterMs: number | null;
  /** To the end of the jobs, with all further attempts. */
  readonly endedAfterMs: number;
}

export async function playScenario(cluster: GangCluster, scenario: Scenario): Promise<Played> {
  const { nodes, fault } = scenario;
  let sinceMs = boottimeMs();
  const jobIds = await Promise.all(
    Array.from({ length: scenario.gangs ?? 1 }, () => cluster.submit(specOf(cluster, scenario))),
  );
  const [jobId = ''] = jobIds;
  let victim: Host | null = null;
  let undo = async () => {};
  if (fault !== null) {
    await cluster.untilOutput(jobId, 'the gang works', { rank: fault.rank });
    victim = hostOfRank(cluster, await cluster.api.getJob(jobId), fault.rank);
    sinceMs = boottimeMs();
    undo = await inflict(fault, victim, jobId);
  }
  let jobs: readonly JobView[];
  let endSeenMs: number;
  try {
    jobs = await Promise.all(jobIds.map((id) => cluster.untilEnded(id)));
    endSeenMs = boottimeMs();
    // Before the fault is undone: a host that was paused beyond its lease has instructions left that no fence can stop.
    expectHistory(cluster, scenario, jobIds, endSeenMs);
  } finally {
    await undo();
    // A failed scenario must not take the hosts away from the next one.
    await cluster.api.stopJobs(jobIds);
  }
  if (jobs.length > 1) expectToHaveMet(cluster, jobs);
  for (const job of jobs) {
    expectEnds(job, scenario, victim);
    await expectResult(cluster, job, nodes);
  }
  await cluster.untilOnline();
  for (const id of jobIds) {
    await waitFor(`no process of ${id} is left`, () => cluster.processesOf(id), {
      until: (left) => left.length === 0,
    });
  }
  // What comes back after the end must not show itself, with the one exception above.
  if (fault?.kind !== 'host is paused') expectHistory(cluster, scenario, jobIds, endSeenMs);
  const uses = (await cluster.api.listNodes()).flatMap(({ gpuUses }) => gpuUses);
  expect(uses).toEqual([]);
  const hit = readBeats(cluster.sharedDir).filter(({ job }) => job === jobId);
  const lastOf = (beats: readonly Beat[]) => Math.max(...beats.map(({ atMs }) => atMs));
  // A program that gave up did so after its last sign of life.
  if (fault?.kind === 'exits') sinceMs = lastOf(hit.filter(({ rank }) => rank === fault.rank));
  return {
    goneAfterMs: scenario.state === 'failed' ? lastOf(hit) - sinceMs : null,
    endedAfterMs: endSeenMs - sinceMs,
  };
}

function specOf(cluster: GangCluster, scenario: Scenario): JobSpecFile {
  const { nodes, fault, launcher, flags = [], maxAttempts = 1 } = scenario;
  const beats = `--beats=${cluster.sharedDir}`;
  const failing = fault?.kind === 'exits' ? [`--fail-rank=${fault.rank}`, '--endless=1'] : [];
  // Such a gang keeps running until a signal reaches it.
  const waiting = fault?.kind === 'signal' ? ['--endless=1'] : [];
  const start = launcher === 'env' ? '/usr/bin/python3' : 'torchrun';
  return {
    command: [start, cluster.program('allReduce.py'), beats, ...failing, ...waiting, ...flags],
    ...(launcher === undefined || launcher === 'torchrun' ? {} : { launcher }),
    // torchrun 1.13 on Python 3.11 fails with its own defaults of these two; local rank 9 is not there.
    env: { PET_REDIRECTS: '9:1', PET_TEE: '9:1', PET_MONITOR_INTERVAL: '0.2' },
    resources: { nodes, gpus: 1 },
    stop_grace: '2s',
    retry: { max_attempts: maxAttempts, backoff: { initial: '100ms', max: '100ms' } },
  };
}

function hostOfRank(cluster: GangCluster, job: JobView, rank: number): Host {
  const node = job.attempts.at(-1)?.tasks[rank]?.node;
  if (node === undefined) throw new Error(`${job.id} has no node of rank ${rank}`);
  return cluster.host(node);
}

/** @returns what undoes it, so that the next scenario finds four good hosts */
async function inflict(fault: Fault, host: Host, jobId: string): Promise<() => Promise<void>> {
  switch (fault.kind) {
    case 'exits':
      return async () => {};
    case 'signal':
      signalProcess(await host.rankProcess(jobId, fault.rank), fault.signal);
      return async () => {};
    case 'host is paused':
      await host.pause();
      return () => host.unpause();
    case 'host is unplugged':
      await host.unplug();
      return () => host.plug();
    case 'host loses power':
      await host.kill();
      return () => host.boot();
    case 'host is slow':
      await host.slow(fault.bitsPerS);
      return () => host.slow(null);
    default:
      return fault satisfies never;
  }
}

/** All on the same nodes, at the same time, and none at the meeting point of another. */
function expectToHaveMet(cluster: GangCluster, jobs: readonly JobView[]): void {
  const names = cluster.hosts.map(({ name }) => name).sort();
  for (const job of jobs) expect(job.attempts[0]?.tasks.map(({ node }) => node).sort()).toEqual(names);
  const meetingPoints = jobs.map(({ attempts }) => `${attempts[0]?.masterAddr}:${attempts[0]?.masterPort}`);
  expect(new Set(meetingPoints).size).toBe(jobs.length);
  const beats = readBeats(cluster.sharedDir);
  const times = jobs.map(({ id }) => beats.filter(({ job }) => job === id).map(({ atMs }) => atMs));
  const lastToBegin = Math.max(...times.map((each) => Math.min(...each)));
  const firstToEnd = Math.min(...times.map((each) => Math.max(...each)));
  expect(lastToBegin).toBeLessThan(firstToEnd);
}

function expectHistory(
  cluster: GangCluster,
  scenario: Scenario,
  jobIds: readonly string[],
  endSeenMs: number,
): void {
  const beats = readBeats(cluster.sharedDir);
  const rank = scenario.fault?.rank ?? 0;
  const fenced = scenario.attempts.flatMap((end, index) =>
    end.fenced === true ? [{ attempt: index + 1, rank }] : [],
  );
  expect(jobIds.flatMap((id) => violations(beats, id, { fenced, endSeenMs }))).toEqual([]);
}

function expectEnds(job: JobView, scenario: Scenario, victim: Host | null): void {
  const seen = `${job.id} ended with ${JSON.stringify({ cause: job.cause, attempts: job.attempts })}`;
  expect(job.state, seen).toBe(scenario.state);
  expect(job.attempts.length, seen).toBe(scenario.attempts.length);
  for (const [index, end] of scenario.attempts.entries()) {
    expectEnd(job.attempts[index]?.cause ?? null, end, scenario.fault, victim, seen);
  }
}

function expectEnd(
  cause: JobView['cause'],
  end: AttemptEnd,
  fault: Fault | null,
  victim: Host | null,
  seen: string,
): void {
  if (end.causes === null) {
    expect(cause, seen).toBeNull();
    return;
  }
  expect(end.causes, seen).toContain(cause?.kind);
  expect(cause?.message, seen).toMatch(end.message ?? /./);
  if (end.blames === 'anybody') return;
  expect(cause, seen).toMatchObject({ node: victim?.name, nodeRank: fault?.rank });
}

/** Every rank of the last attempt has added up everything, and each was on another host. */
async function expectResult(cluster: GangCluster, job: JobView, nodes: number): Promise<void> {
  if (job.state !== 'succeeded') return;
  const outputs = await Promise.all(
    Array.from({ length: nodes }, (_, rank) => cluster.output(job.id, { rank })),
  );
  const places = outputs.map(
    (output, rank) => new RegExp(`^rank ${rank} of ${nodes} on (\\S+)$`, 'm').exec(output)?.[1],
  );
  expect(places).toEqual(job.attempts.at(-1)?.tasks.map(({ node }) => node));
  expect(new Set(places).size).toBe(nodes);
  for (const [rank, output] of outputs.entries()) {
    expect(output).toMatch(new RegExp(`^rank ${rank}: \\d+ sums of ${nodes} ranks are right$`, 'm'));
  }
}
