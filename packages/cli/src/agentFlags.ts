/** The flags of `muster agent`, which are the keys of its configuration file. `muster doctor` has those about the node, too. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type AgentOptions, agentDefaults as defaults, sigtermActions } from '@muster/agent/options';
import { formatDuration } from '@muster/common/spec/duration';
import type { Command } from 'commander';
import { type ContainerFlags, withContainerFlags } from './containerFlags.ts';
import type { ProgramEnvironment } from './environment.ts';
import { usageError } from './errors.ts';
import {
  collect,
  durationMs,
  pageAddress,
  pageListen,
  sizeBytes,
  wholeNumberFlag,
  withConfigFlag,
  withLogLevel,
} from './flags.ts';

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
  | 'accounts'
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

export interface AgentFlags extends ProbeFlags, ContainerFlags {
  readonly data: string;
  readonly name: string;
  readonly coordinator: string;
  readonly joinTokenFile?: string;
  readonly ca?: string;
  readonly cpus?: number;
  readonly label?: readonly string[];
  readonly guard?: 'own' | 'service';
  readonly account?: readonly string[];
  readonly rootTasks?: 'allow' | 'refuse';
  readonly onSigterm?: AgentOptions['onSigterm'];
  readonly shutdownGrace?: number;
  readonly outputCap?: number;
  readonly outputRate?: number;
  readonly outputReserve?: number;
  readonly logLevel?: string;
}

const mebibyte = 1024 * 1024;
const terabytesMb = 1024 * 1024 * 1024;
const shutdownGraceMinMs = 1_000;
const shutdownGraceMaxMs = 60 * 60_000;

/** All flags of `muster agent`, which are the keys of its configuration file. */
export function withAgentFlags(sub: Command): void {
  withConfigFlag(sub)
    .requiredOption('--data <dir>', "holds its credential and its tasks' files; one agent per directory")
    .requiredOption('--name <node>', 'name of this node')
    .requiredOption('--coordinator <host:port>', 'coordinator address')
    .option(
      '--join-token-file <file>',
      'file with a join token, needed once; - is standard input (or MUSTER_JOIN_TOKEN holds the token)',
    )
    .option(
      '--ca <file>',
      "certificate of the coordinator's CA (MUSTER_CA); default: the one of the join token",
    )
    .option('--cpus <count>', 'CPUs to offer; default: all', wholeNumberFlag('--cpus', 1, 4_096))
    .option('--label <name=value>', 'label of this node; may be repeated', collect)
    .addOption(
      sub
        .createOption(
          '--guard <whose>',
          'who starts the guard, the parent of processes: own: this agent; service: muster-guard.service; default own',
        )
        .choices(['own', 'service']),
    )
    .option(
      '--account <who=account>',
      'Unix account that jobs without image run as: user:NAME=ACCOUNT, project:NAME=ACCOUNT or *=ACCOUNT; may be repeated',
      collect,
    )
    .addOption(
      sub
        .createOption(
          '--root-tasks <answer>',
          'jobs that no --account names, if this agent is root: allow: they run as root; refuse: as the account with the name ' +
            `of their user, or not at all; default: ${defaults.rootTasks}`,
        )
        .choices(['allow', 'refuse']),
    )
    .addOption(
      sub
        .createOption(
          '--on-sigterm <action>',
          'leave: stop the agent, tasks keep running, unless the system is being shut down; ' +
            `drain: machine is shutting down, its tasks save and end first; default ${defaults.onSigterm}`,
        )
        .choices(sigtermActions),
    )
    .option(
      '--shutdown-grace <duration>',
      `how long a shutdown may take before the agent exits; default ${formatDuration(defaults.shutdownGraceMs)}`,
      durationMs('--shutdown-grace', shutdownGraceMinMs, shutdownGraceMaxMs),
    )
    .option(
      '--output-cap <size>',
      'size limit of the output of one task on this node, of which beginning and end are kept; default: an eighth of the disk, 1G at most',
      sizeBytes('--output-cap', 1, terabytesMb),
    )
    .option(
      '--output-rate <size>',
      `sustained output rate of a task, per second; default ${defaults.outputLimits.rateBytes / mebibyte}M`,
      sizeBytes('--output-rate', 1, terabytesMb),
    )
    .option(
      '--output-reserve <size>',
      'disk space that output leaves free; default: a twentieth of the disk, 512M at most',
      sizeBytes('--output-reserve', 1, terabytesMb),
    );
  withContainerFlags(withProbeFlags(withLogLevel(sub)));
}

/** Whether an agent with this data directory has a credential of its own, and needs no join token. */
export function hasJoined(dataDir: string): boolean {
  return existsSync(join(dataDir, 'credential'));
}
