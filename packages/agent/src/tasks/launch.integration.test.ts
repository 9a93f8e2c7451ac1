import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { TaskLaunch } from '../drivers/driver.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import { buildLaunch, type NodeFacts, type TaskRelease, writeLaunchFiles } from './launch.ts';
import { fromNothing } from './managerFixture.ts';

const node: NodeFacts = {
  gpusAreSimulated: true,
  containers: { network: 'bridge', haveAccounts: true },
  network: () => ({
    nics: [
      {
        name: 'eth1',
        state: 'up',
        speedMbps: null,
        addresses: ['10.1.0.2'],
        pciBusId: null,
        numaNode: null,
        isVirtual: false,
      },
    ],
    rdmaDevices: [],
    addresses: {},
  }),
  baseEnvironment: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8' },
  accounts: { rules: [], others: 'agent' },
  secrets: { provided: () => ({ directory: null, variables: {}, script: null }) },
};
const lease = { deadlineBoottimeMs: 5_000, bootId: 'boot-1', onExpiry: 'freeze' } as const;
const release: TaskRelease = { addr: '10.1.0.1', port: 20_500, addresses: ['10.1.0.1', '10.1.0.2'], lease };

let folder: string;
let running: ChildProcess[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-launch-'));
  running = [];
});

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function assignmentOf(
  spec: Readonly<Record<string, unknown>>,
  changes: Partial<Assignment> & { readonly nodeRank?: number } = {},
): Assignment {
  const { nodeRank = 1, ...rest } = changes;
  const task = { jobId: 'job_0123456789ab' as JobId, attempt: 3, nodeRank };
  return {
    task,
    ...fromNothing(task),
    spec: decodeJobSpec(JSON.stringify({ name: 'llama', command: ['torchrun', 'train.py'], ...spec })),
    nodeCount: 2,
    gpuUuids: [],
    array: null,
    ...rest,
  };
}

const noCheckpoints = { directory: null, resumeFrom: null };

function launchOf(
  spec: Readonly<Record<string, unknown>>,
  changes: Parameters<typeof assignmentOf>[1] = {},
  released: TaskRelease | null = release,
): TaskLaunch {
  const location = { key: 'job_0123456789ab.3.1', directory: folder };
  return buildLaunch(node, location, assignmentOf(spec, changes), noCheckpoints, released);
}

test('the directory that a process names for its checkpoints is made where it is missing', () => {
  const directoriesOf = (spec: Readonly<Record<string, unknown>>, directory: string) =>
    buildLaunch(
      node,
      { key: 'job_0123456789ab.3.1', directory: folder },
      assignmentOf(spec),
      { directory, resumeFrom: null },
      null,
    ).directories;
  const checkpoint = { dir: '/runs/llama' };
  expect(directoriesOf({ checkpoint }, '/runs/llama')).toEqual(['/runs/llama']);
  expect(directoriesOf({}, '/data/checkpoints/job_0123456789ab')).toEqual([]);
  expect(directoriesOf({ checkpoint, image: 'i', volumes: ['/d:/runs'] }, '/runs/llama')).toEqual([]);
});

test('libraries get the interface of the address that was chosen for this node', () => {
  expect(launchOf({}).env).toMatchObject({
    MASTER_ADDR: '10.1.0.1',
    MASTER_PORT: '20500',
    NCCL_SOCKET_IFNAME: '=eth1',
    GLOO_SOCKET_IFNAME: 'eth1',
    TP_SOCKET_IFNAME: 'eth1',
    PET_LOCAL_ADDR: '10.1.0.2',
  });
});

test('a gang of one is reached at its own meeting place', () => {
  const alone = { ...release, addr: '10.1.0.2', addresses: [] };
  const { env } = launchOf({}, { nodeCount: 1, nodeRank: 0 }, alone);
  expect(env).toMatchObject({ MUSTER_ADDRESSES: '10.1.0.2', GLOO_SOCKET_IFNAME: 'eth1' });
});

test('a container without peers elsewhere meets in a network of its own', async () => {
  const alone = { ...release, addr: '10.1.0.2', addresses: [] };
  const spec = { image: 'trainer:1', launcher: 'mpi-hostfile' };
  const changes = { nodeCount: 1, nodeRank: 0 };
  const { env, network } = launchOf(spec, changes, alone);
  expect(network).toBe('bridge');
  expect(env).toMatchObject({
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: '20500',
    MUSTER_ADDRESSES: '127.0.0.1',
  });
  // Interfaces of the node, which are not there.
  expect(env).not.toHaveProperty('GLOO_SOCKET_IFNAME');
  const location = { key: 'job_0123456789ab.3.0', directory: folder };
  await writeLaunchFiles(node, location, assignmentOf(spec, changes), alone);
  expect(readFileSync(join(folder, 'hosts/hostfile'), 'utf8')).toBe('127.0.0.1 slots=1\n');

  expect(launchOf({ image: 'trainer:1' })).toMatchObject({
    network: 'host',
    env: { MASTER_ADDR: '10.1.0.1' },
  });
  expect(launchOf({}, changes, alone)).toMatchObject({ network: 'host', env: { MASTER_ADDR: '10.1.0.2' } });
  const onHost = { ...node, containers: { network: 'host', haveAccounts: true } } as const;
  const launch = buildLaunch(onHost, location, assignmentOf(spec, changes), noCheckpoints, alone);
  expect(launch).toMatchObject({ network: 'host', env: { MASTER_ADDR: '10.1.0.2' } });
});

test('a coordinator that names no addresses leaves the interfaces to the libraries', () => {
  const { env } = launchOf({}, {}, { ...release, addresses: [] });
  expect(env).toMatchObject({ MASTER_ADDR: '10.1.0.1' });
  for (const name of ['MUSTER_ADDRESSES', 'GLOO_SOCKET_IFNAME', 'PET_LOCAL_ADDR']) {
    expect(env).not.toHaveProperty(name);
  }
});

test('a launch carries its lease; one that is only being prepared has none', () => {
  expect(launchOf({}).lease).toEqual(lease);
  expect(launchOf({}, {}, null).lease).toBeNull();
});

test('a process leaves its error file for the agent, and a container leaves nothing', () => {
  expect(launchOf({}).env).toMatchObject({
    TORCHELASTIC_ERROR_FILE: join(folder, 'torchelastic_error.json'),
  });
  expect(launchOf({ image: 'trainer:1' }).env).not.toHaveProperty('TORCHELASTIC_ERROR_FILE');
});

describe('launcher: mpi-hostfile', () => {
  const spec = { launcher: 'mpi-hostfile', command: ['mpirun', 'train'] };
  const hosts = (name: string) => readFileSync(join(folder, 'hosts', name), 'utf8');
  const write = (released: TaskRelease | null, changes: Partial<Assignment> = {}, more = {}) =>
    writeLaunchFiles(
      node,
      { key: 'k', directory: folder },
      assignmentOf({ ...spec, ...more }, changes),
      released,
    );

  test('the files list every node with its processes', async () => {
    const gpuUuids = ['GPU-1', 'GPU-2'];
    await write(null, { gpuUuids });
    expect(hosts('hostfile')).toBe('');
    await write(release, { gpuUuids });
    expect(hosts('hostfile')).toBe('10.1.0.1 slots=2\n10.1.0.2 slots=2\n');
    expect(hosts('machinefile')).toBe('10.1.0.1:2\n10.1.0.2:2\n');
    expect(launchOf(spec).env['MUSTER_HOSTFILE']).toBe(join(folder, 'hosts/hostfile'));
  });

  test('other accounts can read them, whatever the umask of the agent is', async () => {
    const before = process.umask(0o077);
    onTestFinished(() => void process.umask(before));
    await write(release);
    const modes = ['', 'hostfile', 'machinefile'].map((name) => statSync(join(folder, 'hosts', name)).mode);
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o755, 0o644, 0o644]);
  });

  test('a container sees them, and cannot write them', async () => {
    const inContainer = { ...spec, image: 'trainer:1' };
    await write(release, {}, { image: 'trainer:1' });
    const { env, ownVolumes } = launchOf(inContainer);
    expect(env['MUSTER_HOSTFILE']).toBe('/.muster/hosts/hostfile');
    expect(ownVolumes).toEqual([{ source: join(folder, 'hosts'), target: '/.muster/hosts', readOnly: true }]);
    expect(statSync(join(folder, 'hosts')).mode & 0o777).toBe(0o755);
    expect(launchOf({ ...inContainer, launcher: 'torchrun' }).ownVolumes).toEqual([]);
  });

  test('the other nodes hold their place', () => {
    expect(launchOf(spec, { nodeRank: 0 }).command).toEqual(['mpirun', 'train']);
    expect(launchOf(spec).command[0]).toBe('/bin/sh');
  });

  test('other launchers need no files', async () => {
    await writeLaunchFiles(node, { key: 'k', directory: folder }, assignmentOf({}), release);
    expect(() => hosts('hostfile')).toThrow(/ENOENT/);
  });
});

/** All ranks of both nodes, on loopback, with nothing in their environment but what their launch says. */
async function runGang(
  spec: Readonly<Record<string, unknown>>,
  gpuUuids: readonly string[],
): Promise<string[]> {
  const port = await freePort();
  const gang = { addr: '127.0.0.1', port, addresses: ['127.0.0.1', '127.0.0.1'], lease: null };
  return Promise.all(
    [0, 1].map(async (nodeRank) => {
      const { command, env } = launchOf(spec, { nodeRank, gpuUuids }, gang);
      const [file = '', ...args] = command;
      const child = spawn(file, args, { cwd: folder, env: { ...env, TMPDIR: folder } });
      running.push(child);
      let output = '';
      child.stdout.on('data', (chunk) => (output += chunk));
      child.stderr.on('data', (chunk) => (output += chunk));
      const code = await new Promise((resolve) => child.on('close', resolve));
      expect(code, output).toBe(0);
      return output;
    }),
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Meets the others and adds up their ranks; uses nothing but what torch.distributed reads itself. */
const training = `
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
names = ["LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS"]
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", total.item(), *[os.environ.get(n) for n in names], flush=True)
`;

describe('with real PyTorch', () => {
  test('torchrun needs no flags', async () => {
    writeFileSync(join(folder, 'train.py'), training);
    // The way standard output is redirected is broken in this combination of PyTorch 1.13 and Python 3.11.
    const command = ['python3', '-m', 'torch.distributed.run', '-r', '1', '-t', '1', 'train.py'];
    const outputs = await runGang({ command }, []);
    for (const [rank, output] of outputs.entries()) {
      expect(output).toContain(`rank ${rank} of 2 sum 3 0 1 job_0123456789ab.3 0`);
    }
  });

  test('launcher: env starts a process per GPU', async () => {
    writeFileSync(join(folder, 'train.py'), training);
    const spec = { command: ['python3', 'train.py'], launcher: 'env' };
    const outputs = await runGang(spec, ['GPU-SIMULATED-a-0', 'GPU-SIMULATED-a-1']);
    for (const [nodeRank, output] of outputs.entries()) {
      for (const local of [0, 1]) {
        expect(output).toContain(`rank ${2 * nodeRank + local} of 4 sum 10 ${local} 2 None None`);
      }
    }
  });
});
