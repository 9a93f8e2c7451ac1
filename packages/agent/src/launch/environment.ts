/**
 * The environment contract: what every task finds in its environment, so that `torchrun train.py` needs no flags and
 * scripts without torchrun work too. A pure function; what the user set in the spec wins over all of it.
 *
 * MASTER_* and PET_* follow torch.distributed.run, which reads each of its flags from PET_<FLAG>.
 */
import { join } from 'node:path';
import { evaluatesLabel } from '@muster/common/checkpoints';
import type { Master } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { GpuDevice } from '../drivers/driver.ts';
import { type HostfilePaths, hostfileEnvironment } from './hostfile.ts';

export interface EnvironmentInput {
  readonly task: TaskRef;
  readonly spec: JobSpec;
  /** Of this attempt, which may be fewer than the job would like. */
  readonly nodeCount: number;
  readonly gpus: readonly GpuDevice[];
  readonly array: { readonly index: number; readonly size: number } | null;
  /** null: not known yet, the task is only being prepared */
  readonly master: Master | null;
  /** Of every node of the gang, by node rank. Empty: not known. */
  readonly addresses: readonly string[];
  /** What libraries get to know of the node's networks. */
  readonly network: Readonly<Record<string, string>>;
  /** As the job sees it; null: it has none. */
  readonly checkpointDir: string | null;
  /** What it begins from. null: nothing. */
  readonly resume: { readonly path: string; readonly step: number | null } | null;
  /** 1: as the user wrote it. */
  readonly batchScale: number;
  readonly lrScale: number;
  /** The attempt in the trace of its job (W3C Trace Context). null: nobody records one. */
  readonly traceparent: string | null;
  /** Where the task may leave something for the agent; null: nowhere. */
  readonly ownDirectory: { readonly path: string; readonly errorFile: string } | null;
  readonly hostfiles: HostfilePaths | null;
  /** Of a process: what a login would have given it (PATH, HOME …). Empty for a container, which brings its own. */
  readonly base: Readonly<Record<string, string>>;
}

export function taskEnvironment(input: EnvironmentInput): Readonly<Record<string, string>> {
  const { task, spec, nodeCount, gpus, array, resume } = input;
  const contract: Record<string, string> = {
    MUSTER_JOB_ID: task.jobId,
    MUSTER_JOB_NAME: spec.name,
    MUSTER_ATTEMPT: String(task.attempt),
    MUSTER_NODE_RANK: String(task.nodeRank),
    MUSTER_NNODES: String(nodeCount),
    MUSTER_RESUME_FROM: resume?.path ?? '',
    MUSTER_RESUME_STEP: String(resume?.step ?? ''),
    // An evaluation is a job that begins from what it evaluates.
    ...(spec.labels[evaluatesLabel] === undefined || resume === null
      ? {}
      : { MUSTER_CHECKPOINT: resume.path, MUSTER_CHECKPOINT_STEP: String(resume.step ?? '') }),
    MUSTER_BATCH_SCALE: String(input.batchScale),
    MUSTER_LR_SCALE: String(input.lrScale),
    // The name by which programs with OpenTelemetry look for it.
    ...(input.traceparent === null ? {} : { TRACEPARENT: input.traceparent }),
    ...(input.addresses.length === 0 ? {} : { MUSTER_ADDRESSES: input.addresses.join(',') }),
    ...(input.checkpointDir === null ? {} : { MUSTER_CHECKPOINT_DIR: input.checkpointDir }),
    ...(array === null
      ? {}
      : { MUSTER_ARRAY_INDEX: String(array.index), MUSTER_ARRAY_SIZE: String(array.size) }),
    ...rendezvousEnvironment(input),
    ...(input.hostfiles === null ? {} : hostfileEnvironment(input.hostfiles)),
    ...watchdogEnvironment,
    ...(input.ownDirectory === null ? {} : diagnosisEnvironment(input.ownDirectory)),
    ...input.network,
    ...gpuEnvironment(gpus, spec.image !== null),
  };
  return { ...input.base, ...contract, ...spec.env };
}

/** One process per GPU; a node without GPUs runs one. */
export function processesPerNode(gpus: readonly GpuDevice[]): number {
  return Math.max(1, gpus.length);
}

function rendezvousEnvironment({
  task,
  nodeCount,
  gpus,
  master,
  addresses,
}: EnvironmentInput): Record<string, string> {
  const perNode = processesPerNode(gpus);
  const own = addresses[task.nodeRank];
  return {
    ...(master === null ? {} : { MASTER_ADDR: master.addr, MASTER_PORT: String(master.port) }),
    NNODES: String(nodeCount),
    NODE_RANK: String(task.nodeRank),
    NPROC_PER_NODE: String(perNode),
    WORLD_SIZE: String(nodeCount * perNode),

    PET_NNODES: String(nodeCount),
    PET_NODE_RANK: String(task.nodeRank),
    PET_NPROC_PER_NODE: String(perNode),
    ...(master === null ? {} : { PET_MASTER_ADDR: master.addr, PET_MASTER_PORT: String(master.port) }),
    // The ranks are given: nobody has to elect them, and a store whose first node died is not waited for. Its endpoint is
    // made of PET_MASTER_*; PET_RDZV_ENDPOINT would win over a --master-port that somebody writes.
    PET_RDZV_BACKEND: 'static',
    // Unique per attempt, so that a process left over from another attempt cannot join this one.
    PET_RDZV_ID: `${task.jobId}.${task.attempt}`,
    // Else torchrun asks the resolver for the node's name, and tells the others what that says.
    ...(own === undefined ? {} : { PET_LOCAL_ADDR: own }),
    // Muster starts again, on nodes that work and from the last checkpoint; torchrun would on the same nodes.
    PET_MAX_RESTARTS: '0',
    // torchrun looks at its workers every 5 s by default: a failed rank would be noticed that much later.
    PET_MONITOR_INTERVAL: '0.1',
  };
}

/** How PyTorch ends a hung collective, and what it writes down about it. */
const watchdogEnvironment: Readonly<Record<string, string>> = {
  // Abort and end the process: a rank that only threw would leave the others waiting for it.
  TORCH_NCCL_ASYNC_ERROR_HANDLING: '1',
  TORCH_NCCL_ENABLE_MONITORING: '1',
  // Some releases gave up after 2 minutes without a sign of their own watchdog, which a slow driver call can exceed.
  TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: '600',
  TORCH_NCCL_DUMP_ON_TIMEOUT: '1',
  // The flight recorder: the last collectives of each rank. Release 2.9 has new names and still knows the old ones.
  TORCH_NCCL_TRACE_BUFFER_SIZE: '2000',
  TORCH_FR_BUFFER_SIZE: '2000',
};

/** The libraries append the rank to the name of a dump. */
function diagnosisEnvironment(own: { path: string; errorFile: string }): Record<string, string> {
  const dump = join(own.path, 'nccl_trace_rank_');
  return {
    TORCHELASTIC_ERROR_FILE: join(own.path, own.errorFile),
    TORCH_NCCL_DEBUG_INFO_TEMP_FILE: dump,
    TORCH_FR_DUMP_TEMP_FILE: dump,
  };
}

/** By UUID, because indexes change after a reset. A task without GPUs must not find those of others. */
function gpuEnvironment(gpus: readonly GpuDevice[], inContainer: boolean): Record<string, string> {
  const uuids = gpus.map((gpu) => gpu.uuid).join(',');
  const simulated = gpus.some((gpu) => gpu.simulated);
  // A container sees only its own devices, and what it sees is the driver's to say; CUDA_VISIBLE_DEVICES on top of
  // that would name devices by UUIDs that are right outside and may be wrong inside.
  if (inContainer && !simulated) return {};
  return {
    CUDA_VISIBLE_DEVICES: uuids,
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    NVIDIA_VISIBLE_DEVICES: uuids || 'void',
  };
}
