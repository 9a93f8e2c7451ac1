/** The flags of `muster submit` that describe the job. Values stay as typed: the job spec's own checks judge them. */
import type { SpecOverrides } from '@muster/common/spec/overrides';
import type { Command } from 'commander';
import { collect } from '../flags.ts';

export interface SpecFlags {
  readonly name?: string;
  readonly project?: string;
  readonly image?: string;
  readonly env?: readonly string[];
  readonly workdir?: string;
  readonly umask?: string;
  readonly nodes?: string;
  readonly topology?: string;
  readonly gpus?: string;
  readonly gpuType?: readonly string[];
  readonly gpuMemory?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly shm?: string;
  readonly volume?: readonly string[];
  readonly priority?: string;
  readonly preemptible?: boolean;
  readonly maxRuntime?: string;
  readonly stopGrace?: string;
  readonly launcher?: string;
  readonly network?: string;
  readonly preflight?: boolean;
  readonly lease?: string;
  readonly nodeLoss?: string;
  readonly stopSignal?: string;
  readonly onDivergence?: string;
  readonly onHang?: string;
  readonly param?: readonly string[];
  readonly maxPreemptions?: string;
  readonly keepLast?: string;
  readonly checkpointPattern?: string;
  readonly maxAttempts?: string;
  readonly checkpointDir?: string;
  readonly array?: string;
  readonly after?: readonly string[];
  readonly label?: readonly string[];
}

export function withSpecFlags(command: Command): Command {
  return command
    .optionsGroup('The job (each wins over the file):')
    .option('--name <name>', "default: the program's name")
    .option('--project <project>', 'project (accounting)')
    .option('--image <image>', 'container image; without one the job runs as a process on the node')
    .option(
      '--umask <mode>',
      'file mode mask, such as 0027; default: that of this shell, for jobs without an image',
    )
    .option('--workdir <dir>', 'working directory; default: the current one, for jobs without an image')
    .option(
      '-e, --env <name=value>',
      'environment variable; NAME alone copies yours; may be repeated',
      collect,
    )
    .option('-v, --volume <volume>', '/on/node:/in/container[:ro]; may be repeated', collect)
    .option('--nodes <count>', 'nodes at the same time, or a range such as 1:4; default 1')
    .option('--topology <topology>', 'required: all nodes under one switch; default preferred')
    .option('--gpus <count>', 'GPUs on each node; default 0')
    .option('--gpu-type <model>', 'acceptable GPU model, such as H100; may be repeated', collect)
    .option('--gpu-memory <size>', 'minimum memory of each GPU, such as 80G')
    .option('--cpus <count>', 'CPUs on each node')
    .option('--memory <size>', 'memory on each node, such as 64G')
    .option('--shm <size>', 'size of /dev/shm in the container, such as 16G')
    .option('--priority <0..100>', 'higher starts first; default 50')
    .option('--preemptible', 'can be preempted by a higher-priority job, with time to save')
    .option('--max-runtime <duration>', 'longest time one attempt may run, such as 24h')
    .option('--stop-grace <duration>', 'time from the stop signal to SIGKILL; default 60s')
    .option('--stop-signal <signal>', 'the first signal of a stop; default SIGTERM')
    .option(
      '--launcher <launcher>',
      'torchrun, env or mpi-hostfile: how the command is started; default torchrun',
    )
    .option('--network <network>', 'network or interface between the nodes, such as 10.1.0.0/16 or ib0')
    .option('--preflight', 'measure the paths between the nodes before each attempt')
    .option('--lease <duration>', 'how long a task may run without contact with the coordinator')
    .option('--node-loss <action>', 'what to do when a node is lost: requeue or hold; default requeue')
    .option('--max-attempts <count>', 'failures without a newer checkpoint; 1: no retry; default 5')
    .option('--max-preemptions <count>', 'how often it can be preempted; default: unlimited')
    .option(
      '--on-divergence <reaction>',
      'what to do when the loss becomes NaN or explodes: warn or stop; default warn',
    )
    .option('--on-hang <reaction>', 'what to do when it hangs: warn or restart; default warn')
    .option(
      '--param <name=value>',
      'value of {name} in the command, such as batch_size=32; may be repeated',
      collect,
    )
    .option('--checkpoint-dir <dir>', 'directory the job saves to')
    .option('--checkpoint-pattern <pattern>', 'name pattern of its checkpoints, such as run-{step}.bin')
    .option('--keep-last <count>', 'keep only the newest COUNT checkpoints')
    .option(
      '--array <indexes>',
      'submit an array of jobs: a count, or indexes such as 0-9, 1,3,7 or 0-9%4 (at most 4 at the same time)',
    )
    .option(
      '--after <job>',
      'start once this job or array has succeeded; JOB:any once it has ended, JOB:fail once it failed; may be repeated',
      collect,
    )
    .option('--label <name=value>', 'label, NAME=VALUE; may be repeated', collect);
}

/** @param commandLine what stands after `--`; null: no `--` */
export function overridesOf(flags: SpecFlags, commandLine: readonly string[] | null): SpecOverrides {
  return {
    ...flags,
    volumes: flags.volume,
    labels: flags.label,
    params: flags.param,
    command: commandLine ?? undefined,
  };
}
