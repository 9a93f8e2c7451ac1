import { agentDefaults } from '@muster/agent/options';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { type ProbeFlags, probeOptions, withProbeFlags } from './agentFlags.ts';
import { readEnvironment } from './environment.ts';

function parse(...argv: readonly string[]) {
  const command = withProbeFlags(new Command('agent'))
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(argv, { from: 'user' });
  return probeOptions(command.opts<ProbeFlags>(), { workingDir: '/srv', checkpointRoots: [] });
}

test('without flags the defaults of the agent hold', () => {
  const { caCertificate: _ca, cpus: _cpus, labels: _labels, logLevel: _logLevel, ...others } = agentDefaults;
  const {
    onSigterm: _onSigterm,
    shutdownGraceMs: _graceMs,
    containers: _containers,
    accounts: _accounts,
    rootTasks: _rootTasks,
    outputLimits: _outputLimits,
    ...probes
  } = others;
  expect(parse()).toEqual(probes);
});

test('every flag reaches the agent; paths are meant from here, bare names are looked up', () => {
  const flags = {
    '--gpu-source': 'nvml',
    '--profiling': 'gpm',
    '--nvidia-smi': './nvidia-smi',
    '--nvml-library': 'libnvidia-ml.so.2',
    '--dcgm-exporter': 'http://127.0.0.1:9401/metrics',
    '--dcgmi': 'dcgmi-4',
    '--sample-interval': '500ms',
    '--metrics': '127.0.0.1:0',
    '--hostname-label': 'hostname',
    '--hpc-job-dir': 'hpc',
    '--checkpoint-root': 'shared/ck',
    '--condition-table': 'table.yaml',
    '--kernel-log': '/tmp/kmsg',
    '--docker-socket': 'docker.sock',
  };
  expect(parse(...Object.entries(flags).flat())).toEqual({
    gpus: { kind: 'detect' },
    gpuSource: 'nvml',
    profilingSource: 'gpm',
    nvidiaSmiPath: '/srv/nvidia-smi',
    nvmlLibrary: 'libnvidia-ml.so.2',
    dcgmExporterUrl: 'http://127.0.0.1:9401/metrics',
    dcgmiPath: 'dcgmi-4',
    sampleIntervalMs: 500,
    metricsListen: '127.0.0.1:0',
    hostnameLabel: 'hostname',
    hpcJobDir: '/srv/hpc',
    checkpointRoots: ['/srv/shared/ck'],
    conditionTable: '/srv/table.yaml',
    kernelLog: '/tmp/kmsg',
    dockerSocket: '/srv/docker.sock',
  });
});

test('checkpoint roots come from the environment of the service, unless flags name others', () => {
  const { checkpointRoots } = readEnvironment(
    { MUSTER_CHECKPOINT_ROOTS: '/shared/a::/shared/b' },
    'muster',
    '/',
  );
  expect(probeOptions({}, { workingDir: '/', checkpointRoots }).checkpointRoots).toEqual([
    '/shared/a',
    '/shared/b',
  ]);
  expect(parse('--checkpoint-root', '/c', '--checkpoint-root', '/d').checkpointRoots).toEqual(['/c', '/d']);
});

test('off is no page, and simulated GPUs are what --gpus says', () => {
  expect(parse('--metrics', 'off').metricsListen).toBeNull();
  expect(parse('--gpus', '4').gpus).toEqual({ kind: 'simulated', count: 4 });
});

test.each([
  [['--gpu-source', 'rocm'], 'Allowed choices are auto, nvml, nvidia-smi'],
  [['--profiling', 'yes'], 'Allowed choices are auto, dcgm-exporter, dcgmi, gpm, off'],
  [['--hostname-label', 'host'], 'Allowed choices are Hostname, hostname'],
  [
    ['--dcgm-exporter', 'localhost:9400'],
    '--dcgm-exporter takes a URL such as http://127.0.0.1:9400/metrics',
  ],
  [['--sample-interval', '1h'], '--sample-interval takes a duration from 100ms to 1m'],
  [['--metrics', '9410'], '--metrics takes HOST:PORT, such as 127.0.0.1:9410, or off; got "9410"'],
  [
    ['--metrics', '0.0.0.0:9410'],
    '--metrics serves on this machine only, such as 127.0.0.1:9410; 0.0.0.0 is open',
  ],
  [
    ['--gpus', '4', '--gpu-source', 'nvml'],
    '--gpus simulates GPUs, so there is nothing for --gpu-source to read',
  ],
])('%j is refused', (argv, message) => {
  expect(() => parse(...argv)).toThrow(message);
});
