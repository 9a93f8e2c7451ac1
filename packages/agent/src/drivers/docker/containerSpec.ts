/**
 * What the engine is asked to run, as a pure function of the launch and of what the engine can do.
 *
 * How a task's output reaches `<directory>/output.log`. The engine reads stdout and stderr through two pipes, so it cannot
 * know in which order a task wrote to both; it also costs five seconds of CPU per million lines to read back, and loses the
 * end of a followed log now and then (docs/decisions/docker-client.md has the measurements). So the file itself is mounted
 * into the container and the image's own shell opens it for the command, then becomes the command: `file`. The kernel keeps
 * the order, nothing runs between task and file, and an agent that is away is not missed. Where the image has no shell, or
 * a shell would not pass the environment on, or SELinux forbids the mount, the engine keeps the output and the driver
 * copies it: `engine` (engineOutput.ts).
 */
import type { AccountIds } from '../../taskFacts/account.ts';
import type { TaskName } from '../../taskFacts/execution.ts';
import type { TaskLaunch, VolumeMount } from '../driver.ts';
import { type ContainerPolicy, containerUser, otherUserEnvironment } from './containerPolicy.ts';
import type { ImageDetails } from './engineAnswers.ts';
import { deviceRequests, type GpuRequestMode, visibleDevices } from './gpuRequests.ts';

export type OutputMode = 'file' | 'engine';

export interface ContainerIdentity {
  /** Distinguishes the containers of several agents on one machine. */
  readonly agentId: string;
  /** Of the machine's current boot. */
  readonly bootId: string;
}

export interface ContainerPlan extends ContainerIdentity {
  readonly launch: TaskLaunch;
  readonly image: ImageDetails;
  /** Of the launch's account; null: it has none. */
  readonly ids: AccountIds | null;
  readonly output: OutputMode;
  readonly gpuMode: GpuRequestMode;
  /** The engine can put its init in front of the command. */
  readonly init: boolean;
  /** As the container mounts them. */
  readonly volumes: readonly VolumeMount[];
  readonly policy: Pick<ContainerPolicy, 'user' | 'capabilities' | 'readOnlyRoot'>;
}

export const labels = {
  task: 'muster.task',
  agent: 'muster.agent',
  boot: 'muster.boot',
  output: 'muster.output',
} as const;

export const shell = '/bin/sh';
/** In the root of the container, where no volume can hide it. */
const outputInContainer = '/.muster/output.log';
const shellScript = `exec "$0" "$@" >>${outputInContainer} 2>&1`;
const variablesInContainer = '/.muster/variables';
/** Complaints of the shell about the script are output: they may hold a value, and output is masked. */
const scriptWithVariables = `exec >>${outputInContainer} 2>&1; . ${variablesInContainer} && exec "$0" "$@"`;

const mebibyte = 1024 * 1024;
/** The engine's default of 64 MiB ends data loaders and NCCL with a bus error. A limit: unused pages cost nothing. */
const shmBytesPerGpu = 1024 * mebibyte;
/** Threads count. Eight ranks with their data loaders stay below a third of this; a fork bomb does not. */
const pidsMax = 32_768;
const gpuStackBytes = 64 * mebibyte;

/** Container names are unique per engine: a second container for the same task cannot be made, whatever we forget. */
export function containerName(key: TaskName): string {
  return `muster-${key.replaceAll('.', '-')}`;
}

/** The image's entrypoint stays in front, as with `docker run`; a command replaces only the image's own command. */
export function argvOf(launch: TaskLaunch, image: ImageDetails): readonly string[] {
  return [...image.entrypoint, ...(launch.command.length > 0 ? launch.command : image.command)];
}

/** A shell drops variables whose names are no identifiers of its own. */
export function survivesShell(launch: TaskLaunch, image: ImageDetails): boolean {
  const names = [...Object.keys(launch.env), ...image.env.map((entry) => entry.split('=', 1)[0] ?? '')];
  return names.every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
}

/**
 * Where a command may be found, as `execvp` looks for it.
 * @param env `NAME=value` each, as the container will have it
 */
export function commandPaths(command: string, workdir: string, env: readonly string[]): readonly string[] {
  if (command.includes('/')) return [command.startsWith('/') ? command : `${workdir}/${command}`];
  const path = env.findLast((entry) => entry.startsWith('PATH='))?.slice('PATH='.length);
  // What the engine itself sets where the image sets nothing.
  const folders = path ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  return folders
    .split(':')
    .map((folder) => (folder === '' ? `${workdir}/${command}` : `${folder}/${command}`));
}

/** The body of `POST /containers/create`. */
export function containerSpec(plan: ContainerPlan): object {
  const { launch } = plan;
  const argv = argvOf(launch, plan.image);
  const user = containerUser(plan.ids, plan.image, plan.policy);
  return {
    Image: launch.image,
    ...(plan.output === 'file'
      ? {
          Entrypoint: [shell, '-c', launch.variablesFile === null ? shellScript : scriptWithVariables],
          Cmd: argv,
        }
      : { Entrypoint: argv.slice(0, 1), Cmd: argv.slice(1) }),
    Env: Object.entries(environment(plan)).map(([name, value]) => `${name}=${value}`),
    ...(launch.workdir === null ? {} : { WorkingDir: launch.workdir }),
    ...(user === null ? {} : { User: user }),
    Labels: {
      [labels.task]: launch.key,
      [labels.agent]: plan.agentId,
      [labels.boot]: plan.bootId,
      [labels.output]: plan.output,
    },
    HostConfig: hostConfig(plan),
  };
}

function environment({ launch, gpuMode, image, ids, policy }: ContainerPlan): Record<string, string> {
  const hasDevices = launch.gpus.some((gpu) => !gpu.simulated);
  const isOtherUser = containerUser(ids, image, policy) !== null;
  const imageHas = (name: string) => image.env.some((entry) => entry.startsWith(`${name}=`));
  return {
    ...Object.fromEntries(
      Object.entries(isOtherUser ? otherUserEnvironment(launch.account?.name ?? 'muster') : {}).filter(
        ([name]) => !imageHas(name),
      ),
    ),
    ...(hasDevices ? { NVIDIA_DRIVER_CAPABILITIES: 'compute,utility' } : {}),
    ...launch.env,
    // Set last, so that nothing overrides it: images of NVIDIA set `all`, and where the NVIDIA runtime is the engine's default,
    // that would open every GPU of the node to a task that has none of them.
    NVIDIA_VISIBLE_DEVICES: visibleDevices(launch.gpus, gpuMode),
  };
}

function hostConfig({ launch, ids, gpuMode, init, output, volumes, policy }: ContainerPlan): object {
  const hasDevices = launch.gpus.some((gpu) => !gpu.simulated);
  const shmBytes =
    launch.shmMb === null ? shmBytesPerGpu * Math.max(1, launch.gpus.length) : launch.shmMb * mebibyte;
  return {
    // Host: peers on other nodes find the ranks at the node's addresses and at ports of the job's choice, and NCCL uses the
    // node's network devices. Bridge: it reaches others, and nothing on the node that listens on loopback.
    NetworkMode: launch.network,
    // Muster alone decides what runs again, and as which attempt.
    RestartPolicy: { Name: 'no' },
    // As PID 1 a program without a handler for SIGTERM would not feel it, and nobody would reap its orphans.
    ...(init ? { Init: true } : {}),
    Mounts: [
      ...(output === 'file' ? [bindMount(`${launch.directory}/output.log`, outputInContainer, false)] : []),
      ...(launch.variablesFile === null ? [] : [bindMount(launch.variablesFile, variablesInContainer, true)]),
      ...volumes.map((volume) => bindMount(volume.source, volume.target, volume.readOnly)),
    ],
    ShmSize: shmBytes,
    // Equal to the memory: else the engine grants as much again in swap, and a job that leaks slows the node for hours.
    ...(launch.memoryMb === null
      ? {}
      : { Memory: launch.memoryMb * mebibyte, MemorySwap: launch.memoryMb * mebibyte }),
    ...(launch.cpus === null ? {} : { NanoCpus: Math.round(launch.cpus * 1e9) }),
    PidsLimit: pidsMax,
    // Also for root in the container: training needs none, and what an image needs them for is its node's to allow.
    ...(ids === null ? {} : { GroupAdd: ids.groups.map(String) }),
    CapDrop: ['ALL'],
    ...(policy.capabilities.length === 0 ? {} : { CapAdd: policy.capabilities }),
    ...(policy.readOnlyRoot
      ? { ReadonlyRootfs: true, Tmpfs: { '/tmp': 'rw,exec,nosuid,nodev,mode=1777' } }
      : {}),
    SecurityOpt: ['no-new-privileges:true'],
    // Pinned host memory and RDMA need locked pages; deep stacks of compiled kernels overflow the usual 8 MiB.
    ...(hasDevices
      ? {
          Ulimits: [
            { Name: 'memlock', Soft: -1, Hard: -1 },
            { Name: 'stack', Soft: gpuStackBytes, Hard: gpuStackBytes },
          ],
        }
      : {}),
    DeviceRequests: deviceRequests(launch.gpus, gpuMode),
    // `local` keeps bytes as they are, where json-file replaces what is no UTF-8, also a character that a part of a long
    // line ends within. Its rotation (100 MB by default) would lose the beginning before we read it.
    LogConfig: { Type: 'local', Config: { 'max-size': '1000t', 'max-file': '1', compress: 'false' } },
  };
}

/** A mount, not a bind: the engine would make a missing source of a bind as an empty directory that belongs to root. */
function bindMount(source: string, target: string, readOnly: boolean): object {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly };
}
