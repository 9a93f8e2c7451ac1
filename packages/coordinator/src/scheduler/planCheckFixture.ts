/** What is true of every plan, whatever the situation. */

import type { JobId, NodeName } from '@muster/common/ids';
import { expect } from 'vitest';
import {
  acceptableGpus,
  fitsEmpty,
  hasFreeCpus,
  hasFreeGpus,
  hasFreeMemory,
  hasFreeTask,
  isLeftByDrains,
  jobDemand,
  taskDemand,
} from './capacity.ts';
import { queueOrder } from './order.ts';
import { type Decision, plan, reserveAfterMs } from './plan.ts';
import { switchPath } from './topology.ts';
import { gangSizeMax } from './topologyGroups.ts';
import type { Holder, PlannedTask, QueuedJob, SchedulerNode, SchedulerView } from './view.ts';

/** The planner's clock in all situations. */
export const nowMs = 1_000_000;

export function sanityCheck(view: SchedulerView, decisions: readonly Decision[]): void {
  const answered = decisions.flatMap((each) =>
    each.kind === 'start' || each.kind === 'wait' ? [each.jobId] : [],
  );
  const isCut = decisions.some(({ kind }) => kind === 'again');
  const inOrder = view.queue.toSorted(queueOrder).map((job) => job.id);
  expect(answered.toSorted(), 'every queued job starts or has a reason, once').toEqual(
    (isCut ? inOrder.slice(0, answered.length) : inOrder).toSorted(),
  );
  const nodesReversed = view.nodes
    .map((node) => ({ ...node, freeGpus: node.freeGpus.toReversed() }))
    .reverse();
  const shuffled = {
    nodes: nodesReversed,
    queue: view.queue.toReversed(),
    holders: view.holders.toReversed(),
    arraysAtWork: view.arraysAtWork,
  };
  expect(plan(shuffled, nowMs).map(withReason), 'the order of the input does not matter').toEqual(
    decisions.map(withReason),
  );

  const nodes = new Map(view.nodes.map((node) => [node.name, new NodeLedger(node)]));
  const holders = new Map(view.holders.map((holder) => [holder.id, holder]));
  for (const holder of view.holders) if (holder.state !== 'active') releaseAll(holder, nodes);
  const reserved = new Set<NodeName>();
  const jobs = new Map(view.queue.map((job) => [job.id, job]));
  for (const decision of decisions) {
    switch (decision.kind) {
      case 'start':
        checkStart(jobOf(jobs, decision.jobId), decision.tasks, nodes, reserved);
        break;
      case 'reserve':
        for (const name of decision.nodes) reserved.add(name);
        break;
      case 'wait':
        break;
      case 'preempt':
        releaseAll(checkVictim(decision, holders, jobOf(jobs, decision.by.id)), nodes);
        break;
      case 'again':
        expect(decision, 'nothing is decided after it').toBe(decisions.at(-1));
        break;
      case 'hold':
        checkKeep(jobOf(jobs, decision.jobId), decision.tasks, nodes, reserved);
        break;
      default: {
        const never: never = decision;
        throw new Error(`unknown decision ${JSON.stringify(never)}`);
      }
    }
  }
  const kinds = decisions.map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'reserve').length, 'one reservation at a time').toBeLessThan(2);
}

/** A decision with the reason in the place of the function that finds it. */
function withReason(decision: Decision) {
  return decision.kind === 'wait' ? { ...decision, why: decision.why() } : decision;
}

function releaseAll(holder: Holder, nodes: ReadonlyMap<NodeName, NodeLedger>): void {
  for (const task of holder.tasks) nodes.get(task.node)?.release(task);
}

/** Takes it out of those that can be preempted. */
function checkVictim(
  { victim: { id: jobId } }: Extract<Decision, { kind: 'preempt' }>,
  holders: Map<JobId, Holder>,
  by: QueuedJob,
): Holder {
  const victim = holders.get(jobId);
  if (victim === undefined) throw new Error(`${jobId}, which holds nothing, is preempted, or twice`);
  holders.delete(jobId);
  expect(victim.state, `${jobId} is not stopping already`).toBe('active');
  expect(victim.isPreemptible, `${jobId} may be preempted`).toBe(true);
  expect(victim.priority, `${jobId} is of lower priority`).toBeLessThan(by.spec.priority);
  return victim;
}

function checkKeep(
  job: QueuedJob,
  tasks: readonly PlannedTask[],
  nodes: ReadonlyMap<NodeName, NodeLedger>,
  reserved: ReadonlySet<NodeName>,
): void {
  expect(tasks.length, `${job.id} is kept what it needs, and no more`).toBe(job.spec.resources.minNodes);
  checkPlaces(job, tasks, reserved, nodes);
  for (const task of tasks) nodeOf(nodes, task.node).hold(job, task);
}

function checkStart(
  job: QueuedJob,
  tasks: readonly PlannedTask[],
  nodes: ReadonlyMap<NodeName, NodeLedger>,
  reserved: ReadonlySet<NodeName>,
): void {
  const { resources } = job.spec;
  expect(job.dependencies.kind, `${job.id} waits for what it comes after`).toBe('met');
  expect(job.notBeforeMs, `${job.id} waits for its backoff`).toBeLessThanOrEqual(nowMs);
  expect(tasks.length, `${job.id} has the nodes it needs`).toBeGreaterThanOrEqual(resources.minNodes);
  expect(tasks.length, `${job.id} has no more nodes than it wants`).toBeLessThanOrEqual(resources.nodes);
  expect(new Set(tasks.map((task) => task.node)).size, `${job.id} has one task per node`).toBe(tasks.length);
  const { usable, isSpared } = choiceOf(job, [...nodes.values()], reserved);
  // Under which switch its checkpoint is decides for a pinned one that is bound to one.
  if (job.pin === null || resources.topology !== 'required') {
    expect(tasks.length, `${job.id} starts on as many nodes as it can have now`).toBe(
      gangSizeMax(usable, resources),
    );
  }
  checkPlaces(job, tasks, reserved, nodes);
  for (const { node } of tasks) {
    if (isSpared && job.pin?.nodes.has(node) !== true)
      expect(job.excludedNodes, `${job.id} failed on ${node}, and could run elsewhere`).not.toContain(node);
  }
  for (const task of tasks) nodeOf(nodes, task.node).take(job, task);
}

/** Of a start, and of what is kept for later. */
function checkPlaces(
  job: QueuedJob,
  tasks: readonly PlannedTask[],
  reserved: ReadonlySet<NodeName>,
  nodes: ReadonlyMap<NodeName, NodeLedger>,
): void {
  const { resources } = job.spec;
  const demand = taskDemand(resources);
  for (const { node } of tasks) expect(reserved, `${node} is kept for another job`).not.toContain(node);
  if (job.pin !== null) {
    expect(job.pin.nodes, `${job.id} begins where its checkpoint is`).toContain(tasks[0]?.node);
  }
  if (resources.topology === 'required' && resources.nodes > 1) {
    const places = new Set(tasks.map((task) => nodes.get(task.node)?.place));
    expect(places.size, `${job.id} is under one switch`).toBe(1);
  }
  for (const task of tasks) {
    expect(task, `${job.id} gets what it asked for`).toMatchObject({
      cpus: demand.cpus,
      memoryMb: demand.memoryMb,
    });
    expect(task.gpuUuids.length, `${job.id} gets its GPUs`).toBe(demand.gpus);
  }
}

/** What a job has to choose from at this moment of a plan. */
function choiceOf(job: QueuedJob, ledgers: readonly NodeLedger[], reserved: ReadonlySet<NodeName>) {
  const { resources, image } = job.spec;
  const demand = jobDemand(resources, image === null ? 'process' : 'docker');
  const couldEver = ledgers.map((each) => each.left()).filter((node) => fitsEmpty(node, demand));
  const isHome = (node: SchedulerNode) => job.pin?.nodes.has(node.name) === true;
  const others = couldEver.filter((node) => isHome(node) || !job.excludedNodes.has(node.name));
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
      hasFreeMemory(node, demand) &&
      hasFreeTask(node),
  );
  return { usable, isSpared };
}

/** What of a node is there at one time. */
class Account {
  readonly gpus: Set<string>;
  cpus: number;
  memoryMb: number;
  tasks: number;

  constructor({ freeGpus, freeCpus, freeMemoryMb, freeTasks }: SchedulerNode) {
    this.gpus = new Set(freeGpus.map(({ uuid }) => uuid));
    this.cpus = freeCpus;
    this.memoryMb = freeMemoryMb;
    this.tasks = freeTasks;
  }

  take({ node, gpuUuids, cpus, memoryMb }: PlannedTask, when: string): void {
    for (const uuid of gpuUuids) {
      expect(this.gpus, `${uuid} of ${node} is free ${when}, and given once`).toContain(uuid);
      this.gpus.delete(uuid);
    }
    this.cpus -= cpus;
    this.memoryMb -= memoryMb;
    this.tasks -= 1;
    expect(this.cpus, `${node} has the CPUs ${when}`).toBeGreaterThan(-1e-6);
    expect(this.memoryMb, `${node} has the memory ${when}`).toBeGreaterThanOrEqual(0);
    expect(this.tasks, `${node} may have the task ${when}`).toBeGreaterThanOrEqual(0);
  }
}

/** A node while a plan is being checked: as it is, and as it will be once what is stopping has ended. */
class NodeLedger {
  private readonly node: SchedulerNode;
  private readonly now: Account;
  private readonly later: Account;

  constructor(node: SchedulerNode) {
    this.node = node;
    this.now = new Account(node);
    this.later = new Account(node);
  }

  /** Where it is; a node that does not tell is alone there. */
  get place(): string {
    const path = switchPath(this.node);
    return path.length === 0 ? this.node.name : path.join('/');
  }

  /** What a job may start on at this moment of the plan: free, and not kept for another. */
  left(): SchedulerNode {
    const { node, now, later } = this;
    return {
      ...node,
      freeGpus: node.inventory.gpus.filter(({ uuid }) => now.gpus.has(uuid) && later.gpus.has(uuid)),
      freeCpus: Math.min(now.cpus, later.cpus),
      freeMemoryMb: Math.min(now.memoryMb, later.memoryMb),
      freeTasks: Math.min(now.tasks, later.tasks),
    };
  }

  take(job: QueuedJob, task: PlannedTask): void {
    expect(this.node.online, `${this.node.name} is online`).toBe(true);
    this.check(job, task);
    this.now.take(task, 'now');
    this.later.take(task, 'later');
  }

  hold(job: QueuedJob, task: PlannedTask): void {
    const { online, awaitedUntilMs, name } = this.node;
    expect(online || awaitedUntilMs !== null, `${name} is there or awaited`).toBe(true);
    this.check(job, task);
    this.later.take(task, 'later');
  }

  release({ gpuUuids, cpus, memoryMb }: PlannedTask): void {
    for (const uuid of gpuUuids) if (!this.node.drained.gpuUuids.has(uuid)) this.later.gpus.add(uuid);
    this.later.cpus += cpus;
    this.later.memoryMb += memoryMb;
    this.later.tasks += 1;
  }

  private check(job: QueuedJob, { gpuUuids }: PlannedTask): void {
    const { node } = this;
    const { image, resources } = job.spec;
    expect(node.drained.node, `${node.name} is drained`).toBe(false);
    const driver = image === null ? 'process' : 'docker';
    expect(node.inventory.drivers, `${node.name} can run ${job.id}`).toContain(driver);
    for (const uuid of gpuUuids) {
      expect(node.drained.gpuUuids, `${uuid} of ${node.name} is drained`).not.toContain(uuid);
      const gpus = node.inventory.gpus.filter((gpu) => gpu.uuid === uuid);
      expect(acceptableGpus(gpus, resources), `${uuid} is of the kind asked for`).toHaveLength(1);
    }
  }
}

function nodeOf(nodes: ReadonlyMap<NodeName, NodeLedger>, name: NodeName): NodeLedger {
  const node = nodes.get(name);
  if (node === undefined) throw new Error(`a place on ${name}, which is not in the cluster`);
  return node;
}

function jobOf(jobs: ReadonlyMap<JobId, QueuedJob>, id: JobId): QueuedJob {
  const job = jobs.get(id);
  if (job === undefined) throw new Error(`a decision about ${id}, which is not in the queue`);
  return job;
}
