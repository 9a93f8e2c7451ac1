import type { DoctorCheck, DoctorReport } from '@muster/agent/doctor/doctorReport';
import type { AgentOptions } from '@muster/agent/options';
import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { type Answers, aCondition, aGpu, aNode, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, type TestOptions } from '../testing/testContext.ts';
import { type DoctorFlags, examine } from './doctor.ts';

function aCheck(given: Partial<DoctorCheck> = {}): DoctorCheck {
  return {
    area: 'GPU source',
    name: 'nvml',
    state: 'ok',
    chosen: false,
    message: '8 GPUs',
    evidence: null,
    remedy: null,
    ...given,
  };
}

interface Examined {
  readonly checks?: readonly DoctorCheck[];
  readonly flags?: DoctorFlags;
  /** null: there is no coordinator. */
  readonly answers?: Answers | null;
  readonly options?: TestOptions;
}

async function doctor({ checks = [], flags = {}, answers = null, options = {} }: Examined) {
  const coordinator = answers === null ? null : await fakeCoordinator(answers);
  const call = newCall(coordinator?.address ?? null, {
    ...options,
    environment: { hostname: 'gpu-box', ...options.environment },
  });
  const asked: AgentOptions[] = [];
  const exitCode = await examine(call.context, flags, async (given) => {
    asked.push(given);
    return { checks };
  });
  const [agent] = asked;
  return {
    exitCode,
    stdout: call.stdout(),
    stderr: call.stderr(),
    agent,
    address: coordinator?.address ?? '',
  };
}

function parsed(stdout: string): DoctorReport {
  return JSON.parse(stdout) as DoctorReport;
}

const cluster = (...nodes: readonly Parameters<typeof wire.node>[0][]): Answers => ({
  GetCluster: () => ({ id: 'c', version: '0.1.0' }),
  ListNodes: () => ({ nodes: nodes.map(wire.node) }),
  GetUpkeep: () => ({}),
});
const here = aNode({ name: 'gpu-box' });

test('checks come in groups, with what was read and what to do where something is wrong', async () => {
  const checks = [
    aCheck({ chosen: true, evidence: 'driver 580.10.01' }),
    aCheck({ name: 'nvidia-smi', state: 'absent', message: 'it is not on PATH' }),
    aCheck({
      area: 'kernel log',
      name: '/dev/kmsg',
      state: 'problem',
      message: 'it cannot be read',
      evidence: 'EPERM',
      remedy: 'Start the agent as root.',
    }),
    aCheck({ area: 'disk', name: '/data', state: 'warning', message: '97 % full' }),
  ];
  const { exitCode, stdout } = await doctor({ checks, options: { environment: { unicode: true } } });
  expect(exitCode).toBe(exitCodes.problemFound);
  expect(stdout).toBe(
    [
      'GPU source',
      '  ✓ nvml        8 GPUs (used)',
      '  – nvidia-smi  it is not on PATH',
      '',
      'kernel log',
      '  ✗ /dev/kmsg   it cannot be read',
      '                Read: EPERM',
      '                → Start the agent as root.',
      '',
      'disk',
      '  ! /data       97 % full',
      '',
      'coordinator',
      '  – address     none found on this machine',
      '                → Name one with --addr HOST:PORT, or start one: muster up',
      '',
      '1 problem, 1 warning.',
      '',
    ].join('\n'),
  );
});

test('nothing wrong is exit code 0, without UTF-8 in ASCII and with colours on a terminal', async () => {
  const { exitCode, stdout } = await doctor({ checks: [aCheck()], options: { columns: 80 } });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toContain('  \x1b[32mok\x1b[39m nvml     8 GPUs\n');
  expect(stdout).toContain('\x1b[32mNo problems found.\x1b[39m\n');
});

test('an expired certificate is a problem, and a coordinator that is of another version is none', async () => {
  const certificates = [{ kind: 'node', node: 'gpu-2', expiresAtMs: 1_000 }];
  const expired = await doctor({ answers: { ...cluster(here), GetUpkeep: () => ({ certificates }) } });
  expect(expired.exitCode).toBe(exitCodes.problemFound);
  expect(expired.stdout).toMatch(
    /certificates\n {2}x {2}gpu-2 .*it expired .* ago\n.*token create gpu-2 --replace/,
  );

  const { GetUpkeep: _, ...earlier } = cluster(here);
  const unknown = await doctor({ answers: earlier });
  expect(unknown.exitCode).toBe(exitCodes.ok);
  expect(unknown.stdout).toContain('!  disks, certificates');
});

test('the coordinator is asked what it knows of this host', async () => {
  const conditions = [
    aCondition({
      kind: 'disk_full',
      gpuUuid: null,
      severity: 'warning',
      clears: 'when_gone',
      message: 'Full.',
    }),
    aCondition({ message: 'Gone.' }),
  ];
  const node = { ...here, inventory: { ...here.inventory, gpus: [aGpu(0)] }, conditions };
  const elsewhere = aNode({ name: 'node-9', conditions: [aCondition()] });
  const { exitCode, stdout, address } = await doctor({ answers: cluster(node, elsewhere) });
  expect(exitCode).toBe(exitCodes.problemFound);
  expect(stdout).toBe(
    [
      'coordinator',
      `  ok address  ${address}`,
      '  ok answer   it answers and accepts the token; version 0.1.0',
      '  ok gpu-box  online',
      '  x  gpu-box  xid_79 (GPU 0): Gone.',
      '              Read: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.',
      '              -> Once fixed: muster node clear gpu-box xid_79 --gpu 0',
      '  !  gpu-box  disk_full: Full.',
      '              Read: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.',
      '',
      '1 problem, 1 warning.',
      '',
    ].join('\n'),
  );
});

test('nodes are found by the name of the host that their agents tell, or by --name', async () => {
  const host = {
    hostname: 'gpu-box',
    os: '',
    kernel: '',
    cpuModel: '',
    sockets: 1,
    cores: 1,
    threads: 1,
    numaNodes: 1,
    fileSystems: [],
  };
  const named = (name: string) => aNode({ name, inventory: { ...aNode().inventory, host } });
  const answers = cluster(named('node-1'), named('node-2'), aNode({ name: 'other', state: 'silent' }));
  const byHost = await doctor({ answers, flags: { output: 'json' } });
  expect(parsed(byHost.stdout).checks.slice(2)).toMatchObject([
    { name: 'node-1', state: 'ok' },
    { name: 'node-2', state: 'ok' },
  ]);
  const byName = await doctor({ answers, flags: { output: 'json', name: 'other' } });
  expect(parsed(byName.stdout).checks.slice(2)).toMatchObject([
    { name: 'other', state: 'problem', message: expect.stringContaining('silent') },
  ]);
  expect(byName.exitCode).toBe(exitCodes.problemFound);
  const unknown = await doctor({ answers, flags: { output: 'json', name: 'nobody' } });
  expect(parsed(unknown.stdout).checks.at(-1)).toMatchObject({ state: 'problem', name: 'node' });
  const other = await doctor({ answers: cluster(), flags: { output: 'json' } });
  expect(parsed(other.stdout).checks.at(-1)).toMatchObject({ state: 'absent', name: 'node' });
  expect(other.exitCode).toBe(exitCodes.ok);
});

test.each([
  [
    'no coordinator answers',
    { environment: { address: '127.0.0.1:1', token: 't' } },
    'no coordinator answers at 127.0.0.1:1',
  ],
  ['a token is missing', { environment: { address: '127.0.0.1:1' } }, 'no token for the coordinator at'],
])('%s: a problem, and no reason to stop', async (_what, options, message) => {
  const { exitCode, stdout } = await doctor({ checks: [aCheck()], options, flags: { output: 'json' } });
  expect(exitCode).toBe(exitCodes.problemFound);
  expect(parsed(stdout).checks).toMatchObject([
    { name: 'nvml' },
    ...(message.startsWith('no coordinator') ? [{ name: 'address', state: 'ok' }] : []),
    { state: 'problem', message: expect.stringContaining(message), remedy: expect.any(String) },
  ]);
});

test('a refused token is a problem with a remedy', async () => {
  const answers = {
    GetCluster: () => {
      throw new MusterError('unauthenticated', 'no or unknown token');
    },
  };
  const { stdout } = await doctor({ answers, flags: { output: 'json' } });
  expect(parsed(stdout).checks.at(-1)).toMatchObject({
    state: 'problem',
    message: 'no or unknown token',
    remedy: 'Check MUSTER_TOKEN, --token-file or --data.',
  });
});

test('an examination that breaks off is itself the finding', async () => {
  const { context, stdout } = newCall(null);
  const exitCode = await examine(context, { output: 'json' }, () =>
    Promise.reject(new Error('no /proc here')),
  );
  expect(exitCode).toBe(exitCodes.problemFound);
  expect(parsed(stdout()).checks[0]).toMatchObject({
    state: 'problem',
    message: 'it broke off: no /proc here',
  });
});

test("it looks with the agent's flags", async () => {
  const flags: DoctorFlags = {
    gpuSource: 'nvidia-smi',
    nvidiaSmi: 'bin/nvidia-smi',
    metrics: 'off',
    agentData: 'agent',
    name: 'node-7',
  };
  const { agent } = await doctor({ flags, options: { environment: { workingDir: '/srv' } } });
  expect(agent).toMatchObject({
    gpuSource: 'nvidia-smi',
    nvidiaSmiPath: '/srv/bin/nvidia-smi',
    nvmlLibrary: 'libnvidia-ml.so.1',
    metricsListen: null,
    dataDir: '/srv/agent',
    name: 'node-7',
  });
});

test('a clock of the coordinator that was stepped is a problem, with both remedies', async () => {
  const clockProblem = 'clock_stepped: the clock is 100d ahead; if it is right: muster clock accept';
  const GetCluster = () => ({ id: 'c', version: '0.1.0', clockProblem });
  const { stdout, exitCode } = await doctor({ answers: { ...cluster(here), GetCluster } });
  expect(exitCode).toBe(exitCodes.problemFound);
  expect(stdout).toContain(clockProblem);
  expect(stdout).toContain('Both clocks: muster clock');
});
