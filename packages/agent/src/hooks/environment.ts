/**
 * The environment contract: what every task finds in its environment, so that `torchrun train.py` needs no flags and
 * scripts without torchrun work too. A pure function; what the user set in the spec wins over all of it.
 *
 * MASTER_* and PET_* follow torch.distributed.run, which reads each of its flags from PET_<FLAG>.
 */

import type { TaskRef } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { GpuDevice } from '../drivers/driver.ts';

export interface EnvironmentInput {
  readonly task: TaskRef;
  readonly spec: JobSpec;
  readonly nodeCount: number;
  readonly gpus: readonly GpuDevice[];
  readonly array: { readonly index: number; readonly size: number } | null;
  readonly masterAddr: string;
  readonly masterPort: number;
  /** As the job sees it; null: it has none. */
  readonly checkpointDir: string | null;
  /** Has RDMA devices that NCCL could use. */
  readonly hasInfiniband: boolean;
  /** Interface that peers are reached over; null: let the libraries choose. */
  readonly networkInterface: string | null;
  /** Of a process: what a login would have given it (PATH, HOME …). Empty for a container, which brings its own. */
  readonly base: Readonly<Record<string, string>>;
}

export function taskEnvironment(input: EnvironmentInput): Readonly<Record<string, string>> {
  const { task, spec, nodeCount, gpus, array } = input;
  // One process per GPU; a node without GPUs runs one.
  const processesPerNode = Math.max(1, gpus.length);
  const contract: Record<string, string> = {
    MUSTER_JOB_ID: task.jobId,
    MUSTER_JOB_NAME: spec.name,
    MUSTER_ATTEMPT: String(task.attempt),
    MUSTER_NODE_RANK: String(task.nodeRank),
    MUSTER_NNODES: String(nodeCount),
    MUSTER_RESUME_FROM: '',
    ...(input.checkpointDir === null ? {} : { MUSTER_CHECKPOINT_DIR: input.checkpointDir }),
    ...(array === null
      ? {}
      : { MUSTER_ARRAY_INDEX: String(array.index), MUSTER_ARRAY_SIZE: String(array.size) }),

    MASTER_ADDR: input.masterAddr,
    MASTER_PORT: String(input.masterPort),
    NNODES: String(nodeCount),
    NODE_RANK: String(task.nodeRank),
    NPROC_PER_NODE: String(processesPerNode),
    WORLD_SIZE: String(nodeCount * processesPerNode),

    PET_NNODES: String(nodeCount),
    PET_NODE_RANK: String(task.nodeRank),
    PET_NPROC_PER_NODE: String(processesPerNode),
    PET_MASTER_ADDR: input.masterAddr,
    PET_MASTER_PORT: String(input.masterPort),
    // Unique per attempt, so that a process left over from another attempt cannot join this one.
    PET_RDZV_ID: `${task.jobId}.${task.attempt}`,
    // torchrun looks at its workers every 5 s by default: a failed rank would be noticed that much later.
    PET_MONITOR_INTERVAL: '0.5',

    TORCH_NCCL_ASYNC_ERROR_HANDLING: '1',
    ...(input.hasInfiniband ? {} : { NCCL_IB_DISABLE: '1' }),
    ...(input.networkInterface === null
      ? {}
      : { NCCL_SOCKET_IFNAME: input.networkInterface, GLOO_SOCKET_IFNAME: input.networkInterface }),
    ...gpuEnvironment(gpus, spec.image !== null),
  };
  return { ...input.base, ...contract, ...spec.env };
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
