/** The flags by which an agent finds out about its node; `muster doctor` looks through the same eyes. */
import { resolve } from 'node:path';
import { type AgentOptions, agentDefaults as defaults } from '@muster/agent/options';
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { usageError } from './errors.ts';
import { collect, durationMs, pageAddress, pageListen, wholeNumberFlag } from './flags.ts';

export interface ProbeFlags {
  readonly gpus?: number;
  readonly gpuSource?: AgentOptions['gpuSource'];
  readonly profiling?: AgentOptions['profilingSource'];
  readonly nvidiaSmi?: string;
  readonly nvmlLibrary?: string;
  readonly dcgmExporter?: string;
  readonly dcgmi?: string;
  readonly sampleInterval?: number;
  readonly metrics?: string;
  readonly hostnameLabel?: AgentOptions['hostnameLabel'];
  readonly hpcJobDir?: string;
  readonly checkpointRoot?: readonly string[];
  readonly conditionTable?: string;
  readonly kernelLog?: string;
  readonly dockerSocket?: string;
}

type ProbeEnvironment = Pick<ProgramEnvironment, 'workingDir' | 'checkpointRoots'>;

type ProbeOptions = Omit<
  AgentOptions,
  | 'dataDir'
  | 'name'
  | 'coordinator'
  | 'caCertificate'
  | 'joinToken'
  | 'containers'
  | 'cpus'
  | 'labels'
  | 'guardCommand'
  | 'nvmlReaderCommand'
  | 'onSigterm'
  | 'rootTasks'
  | 'shutdownGraceMs'
  | 'outputLimits'
  | 'logLevel'
>;

const sampleIntervalMinMs = 100;
const sampleIntervalMaxMs = 60_000;

export function withProbeFlags(command: Command): Command {
  const choice = (flags: string, description: string, choices: readonly string[]) =>
    command.addOption(command.createOption(flags, description).choices(choices));
  command.optionsGroup('GPUs and health of this node:');
  command.option(
    '--gpus <count>',
    'simulate COUNT GPUs; default: the GPUs of this machine',
    wholeNumberFlag('--gpus', 0, 64),
  );
  choice('--gpu-source <source>', `source of GPU facts; default ${defaults.gpuSource}`, [
    'auto',
    'nvml',
    'nvidia-smi',
  ]);
  choice('--profiling <source>', `source of SM and tensor activity; default ${defaults.profilingSource}`, [
    'auto',
    'dcgm-exporter',
    'dcgmi',
    'gpm',
    'off',
  ]);
  command
    .option('--nvidia-smi <path>', `default: ${defaults.nvidiaSmiPath} on PATH`)
    .option('--nvml-library <path>', `name or path of the NVML library; default ${defaults.nvmlLibrary}`)
    .option('--dcgm-exporter <url>', `default ${defaults.dcgmExporterUrl}`, httpUrl)
    .option('--dcgmi <path>', `default: ${defaults.dcgmiPath} on PATH`)
    .option(
      '--sample-interval <duration>',
      'interval between two readings of the GPUs; default: depends on the source',
      durationMs('--sample-interval', sampleIntervalMinMs, sampleIntervalMaxMs),
    )
    .option(
      '--metrics <host:port>',
      `loopback address of the page for Prometheus, or off; default ${defaults.metricsListen}`,
      pageAddress('--metrics', defaults.metricsListen),
    );
  choice(
    '--hostname-label <label>',
    `of GPU series, as your dashboards say; default ${defaults.hostnameLabel}`,
    ['Hostname', 'hostname'],
  );
  return command
    .option(
      '--checkpoint-root <dir>',
      'directory where jobs keep checkpoints, tested at the start; containers may mount it; may be repeated; ' +
        'default: MUSTER_CHECKPOINT_ROOTS, with : between them',
      collect,
    )
    .option(
      '--hpc-job-dir <dir>',
      'directory in which a dcgm-exporter looks up the job of each GPU; default: none',
    )
    .option('--condition-table <file>', 'override the condition table; default: built-in')
    .option('--kernel-log <file>', `kernel log; -: standard input; default ${defaults.kernelLog}`)
    .option('--docker-socket <path>', `default: ${defaults.dockerSocket}`);
}

/** @throws {CliError} for flags that exclude each other */
export function probeOptions(flags: ProbeFlags, environment: ProbeEnvironment): ProbeOptions {
  const { workingDir } = environment;
  if (flags.gpus !== undefined && flags.gpuSource !== undefined) {
    throw usageError('--gpus simulates GPUs, so there is nothing for --gpu-source to read; leave one out');
  }
  /** A bare name is looked up on PATH or among the libraries; a path is meant from here. */
  const fromHere = (path: string) => (path.includes('/') ? resolve(workingDir, path) : path);
  const place = (path: string | undefined) => (path === undefined ? null : resolve(workingDir, path));
  return {
    gpus: flags.gpus === undefined ? defaults.gpus : { kind: 'simulated', count: flags.gpus },
    gpuSource: flags.gpuSource ?? defaults.gpuSource,
    profilingSource: flags.profiling ?? defaults.profilingSource,
    nvidiaSmiPath: fromHere(flags.nvidiaSmi ?? defaults.nvidiaSmiPath),
    nvmlLibrary: fromHere(flags.nvmlLibrary ?? defaults.nvmlLibrary),
    dcgmExporterUrl: flags.dcgmExporter ?? defaults.dcgmExporterUrl,
    dcgmiPath: fromHere(flags.dcgmi ?? defaults.dcgmiPath),
    sampleIntervalMs: flags.sampleInterval ?? defaults.sampleIntervalMs,
    metricsListen: pageListen(flags.metrics, defaults.metricsListen),
    hostnameLabel: flags.hostnameLabel ?? defaults.hostnameLabel,
    checkpointRoots: (flags.checkpointRoot ?? environment.checkpointRoots).map((path) =>
      resolve(workingDir, path),
    ),
    hpcJobDir: place(flags.hpcJobDir),
    conditionTable: place(flags.conditionTable),
    kernelLog: flags.kernelLog === '-' ? '-' : resolve(workingDir, flags.kernelLog ?? defaults.kernelLog),
    dockerSocket: resolve(workingDir, flags.dockerSocket ?? defaults.dockerSocket),
  };
}

function httpUrl(typed: string): string {
  if (URL.canParse(typed) && new URL(typed).protocol === 'http:') return typed;
  throw usageError(`--dcgm-exporter takes a URL such as ${defaults.dcgmExporterUrl}; got "${typed}"`);
}
