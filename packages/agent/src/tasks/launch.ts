/** From an assignment to a launch: everything a driver needs, chosen here and nowhere else. */
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { GpuDevice, TaskLaunch, TaskLocation } from '../drivers/driver.ts';
import { taskEnvironment } from '../hooks/environment.ts';
import type { Assignment } from './records.ts';

/** What is the same for every task of this node. */
export interface NodeFacts {
  readonly gpusAreSimulated: boolean;
  readonly networkInterface: string | null;
  readonly hasInfiniband: boolean;
  /** PATH, HOME and the like for bare processes. */
  readonly baseEnvironment: Readonly<Record<string, string>>;
}

export function buildLaunch(
  node: NodeFacts,
  location: TaskLocation,
  assignment: Assignment,
  checkpointDir: string | null,
  master: { readonly addr: string; readonly port: number },
): TaskLaunch {
  const spec = decodeJobSpec(assignment.specJson);
  const gpus: GpuDevice[] = assignment.gpuUuids.map((uuid) => ({
    uuid,
    simulated: node.gpusAreSimulated,
  }));
  return {
    ...location,
    image: spec.image,
    command: [...spec.command, ...spec.args],
    env: taskEnvironment({
      task: assignment.task,
      spec,
      nodeCount: assignment.nodeCount,
      gpus,
      array: assignment.array,
      masterAddr: master.addr,
      masterPort: master.port,
      checkpointDir,
      hasInfiniband: node.hasInfiniband,
      networkInterface: node.networkInterface,
      base: spec.image === null ? node.baseEnvironment : {},
    }),
    workdir: spec.workdir,
    gpus,
    cpus: spec.resources.cpus,
    memoryMb: spec.resources.memoryMb,
    shmMb: spec.resources.shmMb,
    volumes: spec.volumes,
    user: null,
  };
}
