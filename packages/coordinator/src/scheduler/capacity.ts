/** What one task of a job takes, and whether one node has it. */
import type { Gpu } from '@muster/common/hardware';
import type { JobResources, JobSpec } from '@muster/common/spec/types';
import type { SchedulerNode } from './view.ts';

export type DriverName = 'process' | 'docker';

export function driverOf({ image }: JobSpec): DriverName {
  return image === null ? 'process' : 'docker';
}

/**
 * Tasks that one node has at once. Leases go out by what its heartbeats name, which are some more
 * (`observedMax` of the protocol): tasks that nobody counts any longer may still be on their way out there.
 */
export const nodeTasksMax = 1_000;

/** What one task of a job takes from a node, of which it is one task as well. */
export interface TaskDemand {
  readonly gpus: number;
  readonly cpus: number;
  readonly memoryMb: number;
}

/** What a job asks of each of its nodes, and of how many. */
export interface JobDemand {
  readonly resources: JobResources;
  readonly driver: DriverName;
  readonly task: TaskDemand;
}

/** A spec never changes, and its key is wanted in every pass in which its job waits. */
const demandKeys = new WeakMap<JobSpec, string>();

/** Equal for jobs that fit on the same nodes, apart from the nodes that each excludes. */
export function demandKeyOf(spec: JobSpec): string {
  let key = demandKeys.get(spec);
  if (key === undefined) {
    key = JSON.stringify([driverOf(spec), spec.resources]);
    demandKeys.set(spec, key);
  }
  return key;
}

export function jobDemand(resources: JobResources, driver: DriverName): JobDemand {
  return { resources, driver, task: taskDemand(resources) };
}

/**
 * A job that names no CPUs takes one when it has no GPUs, so that a flood of small jobs cannot overrun a node, and none
 * when it has: there the GPUs are the scarce thing, and their number says nothing about CPUs.
 */
export function taskDemand(resources: JobResources): TaskDemand {
  return {
    gpus: resources.gpus,
    cpus: resources.cpus ?? (resources.gpus === 0 ? 1 : 0),
    memoryMb: resources.memoryMb ?? 0,
  };
}

export function acceptableGpus(gpus: readonly Gpu[], resources: JobResources): readonly Gpu[] {
  // Most jobs take any GPU, and a pass asks this for every node and job.
  if (resources.gpuType.length === 0 && resources.gpuMemoryMb === null) return gpus;
  return gpus.filter(
    (gpu) =>
      (resources.gpuType.length === 0 ||
        resources.gpuType.some((type) => gpu.model.toLowerCase().includes(type.toLowerCase()))) &&
      (resources.gpuMemoryMb === null || (gpu.memoryMb !== null && gpu.memoryMb >= resources.gpuMemoryMb)),
  );
}

/** Would one task of the job fit if nothing else ran on the node? */
export function fitsEmpty({ inventory }: SchedulerNode, { resources, driver, task }: JobDemand): boolean {
  return (
    inventory.drivers.includes(driver) &&
    acceptableGpus(inventory.gpus, resources).length >= task.gpus &&
    inventory.cpus >= task.cpus &&
    inventory.memoryMb >= task.memoryMb
  );
}

/** Would one task of the job fit if nothing else ran on the node, with what drains leave of it? */
export function isLeftByDrains(
  { drained, inventory }: SchedulerNode,
  { resources, task }: JobDemand,
): boolean {
  if (drained.node) return false;
  if (drained.gpuUuids.size === 0) return true;
  const gpus = inventory.gpus.filter((gpu) => !drained.gpuUuids.has(gpu.uuid));
  return acceptableGpus(gpus, resources).length >= task.gpus;
}

export function hasFreeGpus({ freeGpus }: SchedulerNode, { resources, task }: JobDemand): boolean {
  return acceptableGpus(freeGpus, resources).length >= task.gpus;
}

/** CPUs come in fractions, and ten times 0.7 adds up to a hair more than 7: that must not cost a place. */
export function hasFreeCpus({ freeCpus }: SchedulerNode, { task }: JobDemand): boolean {
  return freeCpus - task.cpus > -1e-6;
}

export function hasFreeMemory({ freeMemoryMb }: SchedulerNode, { task }: JobDemand): boolean {
  return freeMemoryMb >= task.memoryMb;
}

/** Jobs that ask for next to nothing are bounded by this alone. */
export function hasFreeTask({ freeTasks }: SchedulerNode): boolean {
  return freeTasks >= 1;
}

/** Could one task of the job start there now? What most nodes of a full cluster lack is looked at first. */
export function hasRoom(node: SchedulerNode, demand: JobDemand): boolean {
  return (
    node.online &&
    hasFreeGpus(node, demand) &&
    hasFreeCpus(node, demand) &&
    hasFreeMemory(node, demand) &&
    hasFreeTask(node) &&
    fitsEmpty(node, demand) &&
    isLeftByDrains(node, demand)
  );
}

/** Of one node: what an attempt gives back there, or what a job lacks. */
export interface Share {
  readonly gpus: number;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly tasks: number;
}

/** What a node lacks for one task of a job; less than 0: what is left beside it. */
export function lackOf(node: SchedulerNode, { resources, task }: JobDemand): Share {
  return {
    gpus: task.gpus - acceptableGpus(node.freeGpus, resources).length,
    cpus: task.cpus - node.freeCpus,
    memoryMb: task.memoryMb - node.freeMemoryMb,
    tasks: 1 - node.freeTasks,
  };
}

export function sum(a: Share, b: Share): Share {
  return {
    gpus: a.gpus + b.gpus,
    cpus: a.cpus + b.cpus,
    memoryMb: a.memoryMb + b.memoryMb,
    tasks: a.tasks + b.tasks,
  };
}
