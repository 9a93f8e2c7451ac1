/** The tools of the other tests in this folder do what they say: a fault that is none would let every scenario pass. */
import { beforeAll, describe, expect, test } from 'vitest';
import { startContainerCluster } from '../../support/hosts/containerHosts.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { startNamespaceCluster } from '../../support/hosts/namespaceHosts.ts';
import { readBeats } from '../../support/hosts/signOfLife.ts';
import { waitFor } from '../../support/services.ts';

const kinds = { containers: startContainerCluster, namespaces: startNamespaceCluster };

describe.each(['containers', 'namespaces'] as const)('hosts that are %s', (kind) => {
  let cluster: GangCluster;
  let first: Host;
  let second: Host;
  beforeAll(async () => {
    // These hosts show neither firmware nor network cards, so that nothing proves a boot to be one of the same machine.
    cluster = await kinds[kind]({
      hosts: 2,
      expectedErrors: /and this is another one|still answers from an earlier boot/,
    });
    first = cluster.host('host-1');
    second = cluster.host('host-2');
  });

  /** Whether a packet of one host reaches another and comes back. */
  const reaches = async (from: Host, to: Host): Promise<boolean> => {
    const ping = ['/usr/bin/busybox', 'ping', '-c', '1', '-W', '1', to.address];
    return (await from.exec(ping)).exitCode === 0;
  };
  const bootIdOf = async (host: Host): Promise<string> =>
    (await host.exec(['cat', '/proc/sys/kernel/random/boot_id'])).stdout.trim();

  /** A job that beats on both hosts. @returns its id, once it does */
  const startBeating = async (): Promise<string> => {
    const command = ['/usr/bin/python3', cluster.program('signOfLife.py'), cluster.sharedDir];
    const jobId = await cluster.submit({ command, resources: { nodes: 2 } });
    await waitFor('both ranks beat', () => [0, 1].map((rank) => beatsOf(jobId, rank)), {
      until: (counts) => counts.every((count) => count > 0),
    });
    return jobId;
  };
  const beatsOf = (jobId: string, rank: number): number =>
    readBeats(cluster.sharedDir).filter((beat) => beat.job === jobId && beat.rank === rank).length;

  test('have names, boot ids and networks of their own', async () => {
    expect((await first.exec(['hostname'])).stdout).toBe('host-1\n');
    expect(await bootIdOf(first)).not.toBe(await bootIdOf(second));
    expect(await reaches(first, second)).toBe(true);
    const links = await first.onNetwork(['ip', '-o', 'link']);
    expect([...links.matchAll(/^\d+: ([^:@]+)/gm)].map(([, name]) => name)).toEqual(['lo', 'eth0']);
  });

  test('stand still while they are paused', async () => {
    const jobId = await startBeating();
    const job = await cluster.api.getJob(jobId);
    const pausedRank = job.attempts[0]?.tasks.findIndex(({ node }) => node === first.name) ?? -1;
    expect(first.processes(jobId)).toHaveLength(1);
    await first.pause();
    try {
      const before = [0, 1].map((rank) => beatsOf(jobId, rank));
      const other = 1 - pausedRank;
      await waitFor('the other host runs on', () => beatsOf(jobId, other) - (before[other] ?? 0), {
        until: (more) => more >= 20,
      });
      expect(beatsOf(jobId, pausedRank)).toBe(before[pausedRank]);
      expect(first.processes(jobId)).toHaveLength(1);
      await first.unpause();
      await waitFor('it goes on', () => beatsOf(jobId, pausedRank) > (before[pausedRank] ?? 0));
    } finally {
      await first.unpause();
    }
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
    expect(cluster.processesOf(jobId)).toEqual([]);
  });

  test('reach nobody and are reached by nobody while they are unplugged', async () => {
    await first.unplug();
    expect(await reaches(first, second)).toBe(false);
    expect(await reaches(second, first)).toBe(false);
    await first.plug();
    await waitFor('it is back on the network', () => reaches(second, first));
    await cluster.untilOnline();
  });

  test('send no faster than they are let', async () => {
    await first.slow(1_000_000);
    expect(await first.onNetwork(['tc', 'qdisc', 'show', 'dev', 'eth0'])).toContain('rate 1Mbit');
    await first.slow(null);
    expect(await first.onNetwork(['tc', 'qdisc', 'show', 'dev', 'eth0'])).not.toContain('tbf');
  });

  test('are silent without power, and boot with a new boot id', async () => {
    const jobId = await startBeating();
    const bootId = await bootIdOf(first);
    await first.kill();
    expect(first.processes(jobId)).toEqual([]);
    expect(await reaches(second, first)).toBe(false);
    await first.boot();
    expect(await bootIdOf(first)).not.toBe(bootId);
    // The tasks of the earlier boot end once their lease is over, and the job is rescheduled.
    await cluster.untilOnline();
    await waitFor('another attempt', () => cluster.api.getJob(jobId), {
      until: ({ attempts }) => attempts.length > 1,
    });
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
    expect(cluster.processesOf(jobId)).toEqual([]);
  });
});
