/** `aCluster().node({ gpus: 8 }).job({ gpus: 4 }).plan()`: situations for the planner, and what is true of every plan. */

import type { Gpu } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import { expect } from 'vitest';
import { anInventory, aSpec, jobIdOf, nodeNameOf, someGpus } from '../modelFixture.ts';
import {
  acceptableGpus,
  fitsEmpty,
  hasFreeCpus,
  hasFreeGpus,
  hasFreeMemory,
  isLeftByDrains,
  jobDemand,
  taskDemand,
} from './capacity.ts';
import { gangSizeMax } from './gang.ts';
import { type Decision, type PlannedTask, plan, reserveAfterMs } from './plan.ts';
import { switchPath, topologyLabel } from './topology.ts';
import type { ClusterView, DependencyState, DrainedView, NodeView, QueuedJob } from './view.ts';

/** The planner's clock in all situations. */
export const nowMs = 1_000_000;

export interface NodeOptions {
  readonly gpus?: number;
  /** All of its GPUs when left out. */
  readonly freeGpus?: number;
  /** The first so many, which would be chosen first: not free, whatever `freeGpus` says. */
  readonly drainedGpus?: number;
  /** As a whole. */
  readonly drained?: boolean;
  readonly gpu?: Partial<Gpu>;
  readonly cpus?: number;
  readonly freeCpus?: number;
  readonly memoryMb?: number;
  readonly freeMemoryMb?: number;
  readonly online?: boolean;
  readonly drivers?: readonly string[];
  /** Its switches, the nearest first: `rack1/leaf1`. */
  readonly topology?: string;
}

type Resources = NonNullable<JobSpecFile['resources']>;

export interface JobOptions extends Resources {
  readonly image?: string;
  readonly priority?: number;
  readonly waitedMs?: number;
  readonly backoffMs?: number;
  readonly dependencies?: DependencyState;
  /** Names of nodes that it failed on, for want of an image. */
  readonly leftOut?: readonly string[];
}

/** Nodes are named node-1, node-2 …; jobs are numbered 1, 2 … in the order in which they were submitted. */
export class Cluster {
  private readonly nodes: NodeView[] = [];
  private readonly queue: QueuedJob[] = [];

  node(options: NodeOptions = {}): this {
    const name = nodeNameOf(`node-${this.nodes.length + 1}`);
    const gpus = someGpus(name, options.gpus ?? 0, options.gpu);
    const inventory = anInventory({
      gpus,
      ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
      ...(options.memoryMb === undefined ? {} : { memoryMb: options.memoryMb }),
      ...(options.drivers === undefined ? {} : { drivers: options.drivers }),
      ...(options.topology === undefined ? {} : { labels: { [topologyLabel]: options.topology } }),
    });
    this.nodes.push({
      name,
      online: options.online ?? true,
      inventory,
      drained: this.drainedView(options, gpus),
      freeGpus: gpus.slice(options.drainedGpus ?? 0).slice(0, options.freeGpus ?? gpus.length),
      freeCpus: options.freeCpus ?? inventory.cpus,
      freeMemoryMb: options.freeMemoryMb ?? inventory.memoryMb,
    });
    return this;
  }

  private drainedView({ drained = false, drainedGpus = 0 }: NodeOptions, gpus: readonly Gpu[]): DrainedView {
    const gpuUuids = new Set(gpus.slice(0, drainedGpus).map(({ uuid }) => uuid));
    const kinds = drained ? ['disk_read_only'] : gpuUuids.size > 0 ? ['xid_79'] : [];
    return { node: drained, gpuUuids, kinds };
  }

  job(options: JobOptions = {}): this {
    const {
      image,
      priority,
      waitedMs = 0,
      backoffMs = 0,
      dependencies = { kind: 'met' },
      leftOut = [],
      ...resources
    } = options;
    const number = this.queue.length + 1;
    const file = {
      resources,
      ...(image === undefined ? {} : { image }),
      ...(priority === undefined ? {} : { priority }),
    };
    this.queue.push({
      id: jobIdOf(number),
      submitSeq: number,
      spec: aSpec(file),
      notBeforeMs: nowMs - waitedMs + backoffMs,
      waitingSinceMs: nowMs - waitedMs,
      dependencies,
      leftOut: new Map(leftOut.map((name) => [nodeNameOf(name), 'image_pull'])),
    });
    return this;
  }

  /** Plans, and checks what must hold for every plan. */
  plan(): Plan {
    const view = { nodes: this.nodes, queue: this.queue };
    const decisions = plan(view, nowMs);
    sanityCheck(view, decisions);
    return new Plan(decisions);
  }
}

export function aCluster(): Cluster {
  return new Cluster();
}

/** Decisions by the number of their job. */
export class Plan {
  private readonly decisions: readonly Decision[];

  constructor(decisions: readonly Decision[]) {
    this.decisions = decisions;
  }

  tasksOf(job: number): readonly PlannedTask[] | null {
    for (const each of this.decisions)
      if (each.kind === 'start' && each.jobId === jobIdOf(job)) return each.tasks;
    return null;
  }

  /** The nodes it starts on, by rank; null when it does not start. */
  nodesOf(job: number): readonly string[] | null {
    return this.tasksOf(job)?.map((task) => task.node) ?? null;
  }

  /** Why it does not start; null when it does. */
  reasonOf(job: number): PendingReason | null {
    for (const each of this.decisions)
      if (each.kind === 'wait' && each.jobId === jobIdOf(job)) return each.reason;
    return null;
  }

  /** Numbers of the jobs that start, the first to be placed first. */
  get started(): readonly number[] {
    return this.decisions.filter((each) => each.kind === 'start').map((each) => Number(each.jobId.slice(4)));
  }

  get reserved(): readonly { readonly job: number; readonly nodes: readonly string[] }[] {
    return this.decisions
      .filter((each) => each.kind === 'reserve')
      .map((each) => ({ job: Number(each.jobId.slice(4)), nodes: each.nodes }));
  }
}

/** True of every plan, whatever the situation. */
export function sanityCheck(view: ClusterView, decisions: readonly Decision[]): void {
  const answered = decisions.filter((each) => each.kind !== 'reserve').map((each) => each.jobId);
  expect(answered.toSorted(), 'every queued job starts or has a reason, once').toEqual(
    view.queue.map((job) => job.id).toSorted(),
  );
  const nodesReversed = view.nodes
    .map((node) => ({ ...node, freeGpus: node.freeGpus.toReversed() }))
    .reverse();
  const shuffled = { nodes: nodesReversed, queue: view.queue.toReversed() };
  expect(plan(shuffled, nowMs), 'the order of the input does not matter').toEqual(decisions);

  const nodes = new Map(view.nodes.map((node) => [node.name, new NodeLedger(node)]));
  const reserved = new Set<NodeName>();
  const jobs = new Map(view.queue.map((job) => [job.id, job]));
  for (const decision of decisions) {
    const job = jobOf(jobs, decision.jobId);
    if (decision.kind === 'start') checkStart(job, decision.tasks, nodes, reserved);
    if (decision.kind === 'reserve') for (const name of decision.nodes) reserved.add(name);
    if (decision.kind === 'wait')
      expect(decision.reason.message, `${job.id} has a reason in words`).not.toBe('');
  }
  expect(
    decisions.filter((each) => each.kind === 'reserve').length,
    'one reservation at a time',
  ).toBeLessThan(2);
}

function checkStart(
  job: QueuedJob,
  tasks: readonly PlannedTask[],
  nodes: ReadonlyMap<NodeName, NodeLedger>,
  reserved: ReadonlySet<NodeName>,
): void {
  const { resources, image } = job.spec;
  const demand = taskDemand(resources);
  expect(job.dependencies.kind, `${job.id} waits for what it comes after`).toBe('met');
  expect(job.notBeforeMs, `${job.id} waits for its backoff`).toBeLessThanOrEqual(nowMs);
  expect(tasks.length, `${job.id} has the nodes it needs`).toBeGreaterThanOrEqual(resources.minNodes);
  expect(tasks.length, `${job.id} has no more nodes than it wants`).toBeLessThanOrEqual(resources.nodes);
  expect(new Set(tasks.map((task) => task.node)).size, `${job.id} has one task per node`).toBe(tasks.length);
  const { usable, isSpared } = choiceOf(job, [...nodes.values()], reserved);
  expect(tasks.length, `${job.id} starts on as many nodes as it can have now`).toBe(
    gangSizeMax(usable, resources),
  );
  for (const { node } of tasks) {
    expect(reserved, `${node} is kept for another job`).not.toContain(node);
    if (isSpared)
      expect(job.leftOut, `${job.id} failed on ${node}, and could run elsewhere`).not.toContain(node);
  }
  if (resources.topology === 'required') {
    const places = new Set(tasks.map((task) => nodes.get(task.node)?.place));
    expect(places.size, `${job.id} is under one switch`).toBe(1);
  }
  for (const task of tasks) {
    expect(task, `${job.id} gets what it asked for`).toMatchObject({
      cpus: demand.cpus,
      memoryMb: demand.memoryMb,
    });
    expect(task.gpuUuids.length, `${job.id} gets its GPUs`).toBe(demand.gpus);
    const node = nodes.get(task.node);
    if (node === undefined) throw new Error(`${job.id} starts on ${task.node}, which is not in the cluster`);
    node.take(job, task, image === null ? 'process' : 'docker');
  }
}

/** What a job has to choose from at this moment of a plan. */
function choiceOf(job: QueuedJob, ledgers: readonly NodeLedger[], reserved: ReadonlySet<NodeName>) {
  const { resources, image } = job.spec;
  const demand = jobDemand(resources, image === null ? 'process' : 'docker');
  const couldEver = ledgers.map((each) => each.left()).filter((node) => fitsEmpty(node, demand));
  const others = couldEver.filter((node) => !job.leftOut.has(node.name));
  const waitedLong = nowMs - job.waitingSinceMs >= reserveAfterMs;
  const there = others.filter((node) => !waitedLong || (node.online && isLeftByDrains(node, demand)));
  const isSpared = gangSizeMax(there, resources) >= resources.minNodes;
  const usable = (isSpared ? others : couldEver).filter(
    (node) =>
      node.online &&
      !reserved.has(node.name) &&
      isLeftByDrains(node, demand) &&
      hasFreeGpus(node, demand) &&
      hasFreeCpus(node, demand) &&
      hasFreeMemory(node, demand),
  );
  return { usable, isSpared };
}

/** What is left of a node while a plan is being checked. */
class NodeLedger {
  private readonly node: NodeView;
  private readonly freeGpus: Map<string, Gpu>;
  private freeCpus: number;
  private freeMemoryMb: number;

  constructor(node: NodeView) {
    this.node = node;
    this.freeGpus = new Map(node.freeGpus.map((gpu) => [gpu.uuid, gpu]));
    this.freeCpus = node.freeCpus;
    this.freeMemoryMb = node.freeMemoryMb;
  }

  /** Where it is; a node that does not tell is alone there. */
  get place(): string {
    const path = switchPath(this.node);
    return path.length === 0 ? this.node.name : path.join('/');
  }

  /** The node as it is at this moment of the plan. */
  left(): NodeView {
    const { freeCpus, freeMemoryMb } = this;
    return { ...this.node, freeGpus: [...this.freeGpus.values()], freeCpus, freeMemoryMb };
  }

  take(job: QueuedJob, task: PlannedTask, driver: string): void {
    const { node } = this;
    expect(node.online, `${node.name} is online`).toBe(true);
    expect(node.drained.node, `${node.name} is drained`).toBe(false);
    expect(node.inventory.drivers, `${node.name} can run ${job.id}`).toContain(driver);
    for (const uuid of task.gpuUuids) {
      expect(node.drained.gpuUuids, `${uuid} of ${node.name} is drained`).not.toContain(uuid);
      const gpu = this.freeGpus.get(uuid);
      expect(gpu, `${uuid} of ${node.name} is free, and given once`).toBeDefined();
      if (gpu !== undefined)
        expect(acceptableGpus([gpu], job.spec.resources), `${uuid} is of the kind asked for`).toEqual([gpu]);
      this.freeGpus.delete(uuid);
    }
    this.freeCpus -= task.cpus;
    this.freeMemoryMb -= task.memoryMb;
    expect(this.freeCpus, `${node.name} has the CPUs`).toBeGreaterThan(-1e-6);
    expect(this.freeMemoryMb, `${node.name} has the memory`).toBeGreaterThanOrEqual(0);
  }
}

function jobOf(jobs: ReadonlyMap<JobId, QueuedJob>, id: JobId): QueuedJob {
  const job = jobs.get(id);
  if (job === undefined) throw new Error(`a decision about ${id}, which is not in the queue`);
  return job;
}
