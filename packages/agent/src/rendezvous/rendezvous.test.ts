import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import type { PathCheck, Peer } from '@muster/common/gangs';
import type { JobId, TaskRef } from '@muster/common/ids';
import { afterEach, expect, test, vi } from 'vitest';
import type { TaskLaunch } from '../drivers/driver.ts';
import type { NodeNetwork } from '../host/addresses.ts';
import type { HeldPort } from '../launch/masterPort.ts';
import { formatQuestion } from './pathProtocol.ts';
import { createRendezvous, type NodeRendezvous, type RendezvousOptions } from './rendezvous.ts';

const jobId = 'job_0123456789ab' as JobId;
const rank0: TaskRef = { jobId, attempt: 3, nodeRank: 0 };
const rank1: TaskRef = { jobId, attempt: 3, nodeRank: 1 };
const noNetwork: NodeNetwork = { nics: [], rdmaDevices: [], addresses: {} };
const launch = {} as TaskLaunch;
const never = new AbortController().signal;

/** Ports that the kernel has just called free, so that tests beside this one do not meet. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listening(0)));
  const ports = servers.map(portOf);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** A reset is an end like any other here. */
function closed(socket: Socket): Promise<void> {
  socket.on('error', () => {});
  return new Promise((resolve) => void socket.on('close', () => resolve()));
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function listening(port: number, onConnection = (socket: Socket) => void socket): Promise<Server> {
  const server = createServer(onConnection);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const held: HeldPort[] = [];
const servers: Server[] = [];

afterEach(async () => {
  await Promise.all(held.splice(0).map((port) => port.release()));
  for (const server of servers.splice(0)) server.close();
});

async function aNode(nodeName: string, options: Partial<RendezvousOptions> = {}): Promise<NodeRendezvous> {
  const node = createRendezvous({
    nodeName,
    coordinator: '127.0.0.1:7070',
    labels: {},
    network: () => noNetwork,
    ports: options.ports ?? (await freePorts(4)),
    runProgram: () => Promise.reject(new Error('no program was asked for')),
    monotonicMs: () => performance.now(),
    chance: () => 0,
    ...options,
  });
  return {
    ...node,
    hold: async (task) => {
      const port = await node.hold(task);
      held.push(port);
      return port;
    },
  };
}

function checkOf(...peers: readonly Partial<Peer>[]): PathCheck {
  return {
    round: 2,
    addresses: ['127.0.0.1', '127.0.0.1'],
    peers: peers.map((peer) => ({ nodeRank: 0, node: 'node-a', address: '127.0.0.1', port: 1, ...peer })),
    preflight: null,
  };
}

/** What the node finds, and its error alone. */
async function errorOf(node: NodeRendezvous, port: number, task = rank1): Promise<string | null> {
  const findings = await node.check(task, launch, checkOf({ port }), never);
  return findings.paths[0]?.error ?? null;
}

test('a peer of the attempt is reached, and the way there and back is measured', async () => {
  const [a, b] = [await aNode('node-a'), await aNode('node-b')];
  const { port } = await a.hold(rank0);
  const findings = await b.check(rank1, launch, checkOf({ port }), never);
  expect(findings).toEqual({
    round: 2,
    paths: [{ nodeRank: 0, error: null, roundTripUs: expect.any(Number) }],
    preflight: null,
  });
  expect(findings.paths[0]?.roundTripUs).toBeGreaterThan(0);
});

test('IPv6 reaches the same port', async () => {
  const [a, b] = [await aNode('node-a'), await aNode('node-b')];
  const { port } = await a.hold(rank0);
  const check = { ...checkOf({ port, address: '::1' }), addresses: ['::1', '::1'] };
  expect((await b.check(rank1, launch, check, never)).paths[0]?.error).toBeNull();
});

test.each<[string, TaskRef]>([
  ['another attempt', { ...rank0, attempt: 2 }],
  ['another job', { ...rank0, jobId: 'job_ba9876543210' as JobId }],
  ['another rank', { ...rank0, nodeRank: 5 }],
])('%s that holds the port is no peer', async (_what, holder) => {
  const [a, b] = [await aNode('node-a'), await aNode('node-b')];
  const { port } = await a.hold(holder);
  expect(await errorOf(b, port)).toBe(
    `node-b cannot reach node-a at 127.0.0.1:${port} (lo): another attempt answers there, not ${jobId}.3.0; ` +
      'two nodes may have this address',
  );
});

test('a task does not take itself for its peer, as with an address that every node has', async () => {
  const a = await aNode('node-a');
  const { port } = await a.hold(rank0);
  expect(await errorOf(a, port, rank0)).toMatch(/another attempt answers there/);
});

test('a port that is closed', async () => {
  const b = await aNode('node-b');
  const [port = 0] = await freePorts(1);
  expect(await errorOf(b, port)).toBe(
    `node-b cannot reach node-a at 127.0.0.1:${port} (lo): connection refused`,
  );
});

test('somebody who says something else, nothing, or hangs up', async () => {
  const [b, hasty] = [await aNode('node-b'), await aNode('node-c', { pathDeadlineMs: 200 })];
  const sshServer = await listening(0, (socket) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n'));
  const silent = await listening(0);
  const rude = await listening(0, (socket) => void socket.resetAndDestroy());
  servers.push(sshServer, silent, rude);
  expect(await errorOf(b, portOf(sshServer))).toMatch(/a program other than an agent answers there/);
  expect(await errorOf(hasty, portOf(silent))).toMatch(/connected, but no answer within 0.2 s/);
  expect(await errorOf(b, portOf(rude))).toMatch(/connection reset|closed without an answer/);
});

test('an address that the node does not have any more', async () => {
  const [a, b] = [await aNode('node-a'), await aNode('node-b')];
  const { port } = await a.hold(rank0);
  const check = { ...checkOf({ port }), addresses: ['127.0.0.1', '192.0.2.77'] };
  const { paths } = await b.check(rank1, launch, check, never);
  expect(paths[0]?.error).toMatch(/this node has lost the address|invalid argument|EINVAL/i);
});

test('what nobody could connect to is a finding, too', async () => {
  const b = await aNode('node-b');
  expect(await errorOf(b, 70_000)).toMatch(/70000/);
  const { paths } = await b.check(rank1, launch, checkOf({ address: 'no.such.host.invalid' }), never);
  expect(paths[0]?.error).toMatch(/^node-b cannot reach node-a at no.such.host.invalid:1/);
});

test('a check that is no longer needed ends at once, with findings', async () => {
  const b = await aNode('node-b', { pathDeadlineMs: 60_000 });
  const silent = await listening(0);
  servers.push(silent);
  const abort = new AbortController();
  const findings = b.check(rank1, launch, checkOf({ port: portOf(silent) }), abort.signal);
  await once(silent, 'connection');
  abort.abort();
  expect((await findings).paths[0]?.error).toMatch(/cancelled, because the check is no longer needed/);
});

test('ports that are taken are passed over, and each attempt has its own', async () => {
  const [first = 0, second = 0, third = 0] = await freePorts(3);
  const taken = await listening(first);
  servers.push(taken);
  const a = await aNode('node-a', { ports: [first, second, third] });
  const one = await a.hold(rank0);
  const other = await a.hold({ ...rank0, attempt: 4 });
  expect([one.port, other.port]).toEqual([second, third]);
});

test('a node without a free port says so', async () => {
  const taken = await listening(0);
  servers.push(taken);
  const a = await aNode('node-a', { ports: [portOf(taken)] });
  await expect(a.hold(rank0)).rejects.toThrow(/node-a has no free port for a rendezvous/);
});

/** Listens without SO_REUSEADDR, as programs do that do not know better; Node always asks for it. */
async function listenElsewhere(port: number): Promise<void> {
  const program = `import socket; s = socket.socket(); s.bind(("0.0.0.0", ${port})); s.listen()`;
  await promisify(execFile)('/usr/bin/python3', ['-c', program]);
}

test('a released port can be listened on at once, whoever was connected', async () => {
  const [a, b] = [await aNode('node-a'), await aNode('node-b')];
  const port = await a.hold(rank0);
  expect(await errorOf(b, port.port)).toBeNull();
  expect(await errorOf(b, port.port, { ...rank1, attempt: 7 })).not.toBeNull();
  const silent = connect(port.port, '127.0.0.1').on('error', () => {});
  const loud = connect(port.port, '127.0.0.1').on('error', () => {});
  await Promise.all([once(silent, 'connect'), once(loud, 'connect')]);
  loud.write('GET / HTTP/1.1\r\n\r\n');
  await closed(loud);
  await port.release();
  await port.release();
  await listenElsewhere(port.port);
});

/** What the holder of a port says to this line. The connection is left open; the holder's release ends it. */
async function answerTo(port: number, line: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.write(line);
  return new Promise((resolve) => {
    socket.on('data', (chunk) => resolve(chunk.toString()));
    socket.on('close', () => resolve('nothing'));
  });
}

test('only peers of this attempt learn who holds a port', async () => {
  const a = await aNode('node-a');
  const { port } = await a.hold(rank0);
  const here = { kind: 'here' } as const;
  const ask = (task: TaskRef, from = 1) => answerTo(port, formatQuestion({ task, from, question: here }));
  expect(await ask(rank0)).toBe(`muster-path/1 here ${jobId} 3 0 0\n`);
  const notAPeer = 'muster-path/1 not-a-peer\n';
  expect(await ask({ ...rank0, attempt: 2 })).toBe(notAPeer);
  expect(await ask({ ...rank0, nodeRank: 1 })).toBe(notAPeer);
  expect(await ask({ ...rank0, jobId: 'job_ba9876543210' as JobId })).toBe(notAPeer);
  expect(await ask(rank0, 0)).toBe(notAPeer);
});

test('a port takes two measurements at a time, and no more bytes than were announced', async () => {
  const a = await aNode('node-a');
  const { port } = await a.hold(rank0);
  const load = formatQuestion({ task: rank0, from: 1, question: { kind: 'load', bytes: 3 } });
  const waiting = [answerTo(port, load), answerTo(port, load)];
  // Both are being waited for once a third is refused.
  let tries = 0;
  while ((await answerTo(port, `${load}abc`)) !== 'nothing') expect((tries += 1)).toBeLessThan(50);
  await Promise.all(held.splice(0).map((each) => each.release()));
  expect(await Promise.all(waiting)).toEqual(['nothing', 'nothing']);

  const again = await a.hold(rank0);
  expect(await answerTo(again.port, `${load}abc`)).toBe(`muster-path/1 here ${jobId} 3 0 3\n`);
  expect(await answerTo(again.port, `${load}abcd`)).toBe('nothing');
});

test.each(['x'.repeat(10_000), `${'x'.repeat(300)}\n`, 'muster-path/1 here\n', '\n'])(
  'hostile input %# is answered with a reset',
  async (text) => {
    const a = await aNode('node-a');
    const { port } = await a.hold(rank0);
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    let received = '';
    socket.on('data', (chunk) => (received += chunk));
    socket.write(text);
    await closed(socket);
    expect(received).toBe('');
    const b = await aNode('node-b');
    expect(await errorOf(b, port)).toBeNull();
  },
);

test('a crowd from one address does not keep its later ones, or peers, out for ever', async () => {
  const a = await aNode('node-a');
  const { port } = await a.hold(rank0);
  const crowd = Array.from({ length: 256 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  await Promise.all(crowd.map((socket) => once(socket, 'connect')));
  const b = await aNode('node-b');
  expect(await errorOf(b, port)).toMatch(/connection reset|closed without an answer/);
  for (const socket of crowd) socket.destroy();
  await vi.waitFor(async () => expect(await errorOf(b, port)).toBeNull());
});

test('endpoints: the job names the network before the node does, and a node without one says what it has', async () => {
  const address = (cidr: string) => ({
    address: cidr.split('/')[0] ?? '',
    cidr,
    netmask: '',
    mac: '',
    internal: false,
    family: 'IPv4' as const,
  });
  const nic = { state: 'up', pciBusId: null, numaNode: null, isVirtual: false } as const;
  const network = (): NodeNetwork => ({
    nics: [
      { ...nic, name: 'eth0', speedMbps: 1_000, addresses: ['10.0.0.7'] },
      { ...nic, name: 'eth1', speedMbps: 100_000, addresses: ['10.1.2.7'] },
    ],
    rdmaDevices: [],
    addresses: { eth0: [address('10.0.0.7/24')], eth1: [address('10.1.2.7/16')] },
  });
  const coordinator = '198.51.100.1:7070';
  const plain = await aNode('node-a', { network, coordinator });
  const labelled = await aNode('node-a', { network, coordinator, labels: { network: '10.0.0.0/8' } });
  const strict = await aNode('node-a', { network, coordinator, labels: { network: 'eth0' } });
  const addresses = (node: NodeRendezvous, wanted: string | null = null) =>
    node.endpoints(wanted).map((each) => each.address);
  expect(plain.endpoints(null)).toEqual([
    { address: '10.1.2.7', network: '10.1.0.0/16', interface: 'eth1', speedMbps: 100_000, rdma: false },
    { address: '10.0.0.7', network: '10.0.0.0/24', interface: 'eth0', speedMbps: 1_000, rdma: false },
  ]);
  expect(addresses(labelled)).toEqual(['10.1.2.7', '10.0.0.7']);
  expect(addresses(strict)).toEqual(['10.0.0.7']);
  expect(addresses(strict, '10.1.0.0/16')).toEqual(['10.1.2.7']);
  expect(addresses(plain, 'ib0')).toEqual([]);
  expect(plain.endpointProblem('eth1')).toBeNull();
  expect(plain.endpointProblem('ib0')).toBe(
    'node-a has no address on an interface ib0; it has 10.1.2.7 (eth1), 10.0.0.7 (eth0): ' +
      'change `network` of the job, or the label `network` of the node',
  );
});
