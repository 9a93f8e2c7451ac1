/** Processes that compute on GPUs of this node and belong to none of its tasks: a job beside them would starve or fail. */
import type { TaskRef } from '@muster/common/ids';
import { environmentOfProcess, hasEnded, readStat } from '../fence/processes.ts';
import { readKernelFileUnlessGone } from '../host/kernelFiles.ts';
import type { GpuSample } from './gpuSource.ts';

export interface ForeignProcess {
  readonly gpuUuid: string;
  readonly pid: number;
  /** As the kernel shortens it. */
  readonly name: string;
}

export interface LiveProcess {
  readonly name: string;
  /** `NAME=value`, each ended by a zero byte. null: not ours to read. */
  readonly environment: string | null;
}

/** The server through which programs share a GPU (MPS) is the node's, and computes for the holder of the GPU. */
const ofTheNode = /^nvidia-cuda-mps/;

/**
 * Nobody for a GPU whose driver does not report its processes. An instance of a divided card has its own.
 * @param samples of a moment ago, by UUID
 * @param tasks that run on this node, on whatever GPUs
 * @param look null: the process has ended, and holds nothing any longer
 */
export function foreignProcessesOn(
  gpuUuids: readonly string[],
  samples: ReadonlyMap<string, GpuSample>,
  tasks: readonly TaskRef[],
  look: (pid: number) => LiveProcess | null = readLiveProcess,
): readonly ForeignProcess[] {
  return gpuUuids.flatMap((gpuUuid) =>
    (samples.get(gpuUuid)?.processes ?? []).flatMap(({ pid }) => {
      const process = look(pid);
      if (process === null || ofTheNode.test(process.name)) return [];
      const isOurs = tasks.some((task) => belongsTo(process, task));
      return isOurs ? [] : [{ gpuUuid, pid, name: process.name }];
    }),
  );
}

/** Every task finds these in its environment, bare or in a container, and what it starts has them from it. */
function belongsTo({ environment }: LiveProcess, { jobId, attempt, nodeRank }: TaskRef): boolean {
  if (environment === null) return false;
  const entries = `\0${environment}`;
  const wanted = { MUSTER_JOB_ID: jobId, MUSTER_ATTEMPT: attempt, MUSTER_NODE_RANK: nodeRank };
  return Object.entries(wanted).every(([name, value]) => entries.includes(`\0${name}=${value}\0`));
}

function readLiveProcess(pid: number): LiveProcess | null {
  const stat = readStat(pid);
  if (stat === null || hasEnded(stat)) return null;
  return {
    name: readKernelFileUnlessGone(`/proc/${pid}/comm`)?.trim() ?? 'name unknown',
    environment: environmentOfProcess(pid),
  };
}
