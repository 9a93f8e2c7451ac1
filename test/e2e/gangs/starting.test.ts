/** From the allocation of a gang to its release: which way its nodes talk, and what happens when one cannot get ready. */
import type { JobSpecFile } from '@muster/common/spec/types';
import type { JobView } from '@muster/common/views';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { startNamespaceCluster } from '../../support/hosts/namespaceHosts.ts';

/** In two networks, of which the second is faster; the last host wants to be reached by the first one only. */
let cluster: GangCluster;
beforeAll(async () => {
  cluster = await startNamespaceCluster({
    hosts: 4,
    networks: 2,
    linksMbps: [1_000, 25_000],
    agentFlags: (name) => (name === 'host-4' ? ['--label', 'network=eth0'] : []),
  });
});

const backoff = { initial: '100ms', max: '100ms' };

async function run(spec: JobSpecFile): Promise<JobView> {
  const jobId = await cluster.submit({ command: ['/usr/bin/env'], ...spec });
  return cluster.untilEnded(jobId);
}

/** The gang was led to this network: by addresses, by the meeting point, by what its libraries are told. */
async function expectNetwork(job: JobView, network: 0 | 1): Promise<void> {
  expect(job).toMatchObject({ state: 'succeeded', attempts: [{}] });
  const { masterAddr, tasks = [] } = job.attempts[0] ?? {};
  const inNetwork = expect.stringMatching(`^10\\.77\\.${network}\\.`);
  expect(tasks.map(({ address }) => address)).toEqual(tasks.map(() => inNetwork));
  expect(new Set(tasks.map(({ address }) => address)).size).toBe(tasks.length);
  expect(masterAddr).toBe(tasks[0]?.address);
  for (const { nodeRank } of tasks) {
    const output = await cluster.output(job.id, { rank: nodeRank });
    for (const name of ['GLOO_SOCKET_IFNAME=', 'NCCL_SOCKET_IFNAME=='])
      expect(output).toContain(`${name}eth${network}\n`);
    expect(output).toContain(`MASTER_ADDR=${masterAddr}\n`);
  }
}

/** Packets of one host to another at an address of theirs are refused or lost, until the end of the test. */
async function block(host: Host, network: 0 | 1, from: Host, how: readonly string[]): Promise<void> {
  const source = from.address.replace('10.77.0.', `10.77.${network}.`);
  const rule = ['INPUT', '--source', source, '-p', 'tcp', ...how];
  await host.onNetwork(['iptables', '--wait', '--append', ...rule]);
  onTestFinished(async () => void (await host.onNetwork(['iptables', '--wait', '--delete', ...rule])));
}
const lost = ['-j', 'DROP'];
const refused = ['-j', 'REJECT', '--reject-with', 'tcp-reset'];

/** Two nodes were tried and excluded; the next attempt went well on the two others. */
function expectOthersInstead(job: JobView, message: RegExp): void {
  expect(job.attempts[0]?.cause).toMatchObject({
    kind: 'rendezvous',
    message: expect.stringMatching(message),
  });
  expect(nodesOf(job, 0)).toEqual(['host-1', 'host-2']);
  expect(job).toMatchObject({ state: 'succeeded', attempts: [{ runningAtMs: null }, { cause: null }] });
  expect(nodesOf(job, 1)).toEqual(['host-3', 'host-4']);
}

function nodesOf(job: JobView, attempt: number): readonly string[] {
  return (job.attempts[attempt]?.tasks ?? []).map(({ node }) => node).sort();
}

describe('a gang on nodes with two networks talks', () => {
  test('over the faster one', async () => {
    await expectNetwork(await run({ resources: { nodes: 3, gpus: 1 } }), 1);
  });

  test('over the one that the job names', async () => {
    await expectNetwork(await run({ resources: { nodes: 2, gpus: 1 }, network: 'eth0' }), 0);
    await expectNetwork(await run({ resources: { nodes: 2, gpus: 1 }, network: '10.77.0.0/24' }), 0);
  });

  test('over the one that a node is labelled with', async () => {
    await expectNetwork(await run({ resources: { nodes: 4, gpus: 1 } }), 0);
  });

  test('over the second when a firewall is in the way on the first', async () => {
    await block(cluster.host('host-1'), 1, cluster.host('host-2'), lost);
    await block(cluster.host('host-2'), 1, cluster.host('host-1'), refused);
    await expectNetwork(await run({ resources: { nodes: 2, gpus: 1 } }), 0);
  });

  test('not at all when both are blocked: the pair is named, and the next attempt is elsewhere', async () => {
    const [first, second] = [cluster.host('host-1'), cluster.host('host-2')];
    await block(first, 1, second, lost);
    await block(first, 0, second, refused);
    const job = await run({ resources: { nodes: 2, gpus: 1 }, retry: { max_attempts: 1, backoff } });
    expectOthersInstead(job, /^host-[12] cannot reach host-[12] at 10\.77\.0\.1[12]:\d+ \(eth0\): /);
  });
});

test('a pair that is slower than the job bears is named, and the next attempt is elsewhere', async () => {
  const slow = cluster.host('host-1');
  await slow.slow(100_000_000, 'eth1');
  onTestFinished(() => slow.slow(null, 'eth1'));
  const job = await run({
    resources: { nodes: 2, gpus: 1 },
    preflight: { min_bandwidth_mbps: 200 },
    retry: { max_attempts: 1, backoff },
  });
  expectOthersInstead(
    job,
    /^\d+ Mbit\/s were measured between host-[12] and host-[12], and .*min_bandwidth_mbps is 200$/,
  );
  const nodes = await cluster.api.listNodes();
  const measured = nodes.find(({ name }) => name === 'host-1')?.bandwidths ?? [];
  expect(measured).toMatchObject([{ peer: 'host-2', backend: 'gloo' }]);
  expect(measured[0]?.bytesPerS).toBeLessThan(200_000_000 / 8);
});

describe('a node that cannot prepare its task ends the attempt before anything has run, and the next one excludes it', () => {
  test('because its disk is full', async () => {
    const host = cluster.host('host-2');
    const checkpoints = `${host.machine.homeDir}/data/checkpoints`;
    await host.exec(['mkdir', '-p', checkpoints]);
    const mounted = await host.exec(['mount', '-t', 'tmpfs', '-o', 'nr_inodes=1', 'tmpfs', checkpoints]);
    expect(mounted).toMatchObject({ exitCode: 0 });
    onTestFinished(async () => void (await host.exec(['umount', checkpoints])));
    const job = await run({ resources: { nodes: 2, gpus: 1 }, retry: { max_attempts: 1, backoff } });
    expectWithout(
      job,
      'host-2',
      'disk_full',
      /^rank \d on host-2 did not start: no checkpoint directory: ENOSPC/,
    );
  });

  test('because a directory is missing there', async () => {
    const host = cluster.host('host-1');
    // Below a folder that every other host sees as it is.
    const folder = cluster.sharedDir;
    const workdir = `${folder}/programs`;
    expect(await host.exec(['mount', '-t', 'tmpfs', 'tmpfs', folder])).toMatchObject({ exitCode: 0 });
    onTestFinished(async () => void (await host.exec(['umount', folder])));
    const retry = { max_attempts: 2, backoff, on: ['command_not_found' as const] };
    const job = await run({ resources: { nodes: 2, gpus: 1 }, workdir, retry });
    expectWithout(
      job,
      'host-1',
      'command_not_found',
      /^rank \d on host-1 did not start: the working directory .* does not exist on this node/,
    );
  });

  function expectWithout(job: JobView, node: string, kind: string, message: RegExp): void {
    const cause = { kind, node, message: expect.stringMatching(message) };
    expect(job).toMatchObject({
      state: 'succeeded',
      attempts: [{ cause, runningAtMs: null }, { cause: null }],
    });
    expect(nodesOf(job, 0)).toContain(node);
    expect(nodesOf(job, 1)).not.toContain(node);
  }
});

test('mpi-hostfile: the first node has a file of all of them, by addresses that lead there, and the others wait for it', async () => {
  const script = `cat $MUSTER_HOSTFILE; test $OMPI_MCA_orte_default_hostfile = $MUSTER_HOSTFILE
    while read -r address slots; do busybox ping -c 1 -W 2 $address >/dev/null && echo "$address is there"; done < $MUSTER_HOSTFILE`;
  const job = await run({
    command: ['/bin/sh', '-ec', script],
    launcher: 'mpi-hostfile',
    resources: { nodes: 3, gpus: 1 },
  });
  expect(job.state).toBe('succeeded');
  const addresses = (job.attempts[0]?.tasks ?? []).map(({ address }) => address);
  const lines = [
    ...addresses.map((address) => `${address} slots=1`),
    ...addresses.map((address) => `${address} is there`),
  ];
  expect(await cluster.output(job.id)).toBe(`${lines.join('\n')}\n`);
  for (const rank of [1, 2]) expect(await cluster.output(job.id, { rank })).toBe('');
  expect(cluster.processesOf(job.id)).toEqual([]);
});
