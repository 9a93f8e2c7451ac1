/**
 * The capacity of the nodes during one pass, in three views that only differ while attempts are stopping.
 *
 * `free` is held by no attempt. `open` is the part of it on which a job may start now. `coming` is what will be free once
 * the attempts that are stopping have ended and the nodes that are awaited are back: after a start of the coordinator nodes
 * connect one by one, and a job must not preempt others for what the missing nodes are about to release. A job that fits
 * into `coming` has its placement held there. What it needs of it that is free already leaves `open`, so that no job behind
 * it in the queue starts there meanwhile.
 *
 * What a preempted attempt releases is promised to its preemptor until the preemptor has had its turn in the pass.
 * Otherwise the jobs of the next pass could be placed differently from when the victims were chosen, and one of them would
 * have to preempt more.
 */
import type { Gpu } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import type { Holder, PlannedTask, SchedulerNode } from './view.ts';

export class PassCapacity {
  /** Held by no attempt. */
  readonly free: readonly SchedulerNode[];
  /** A job may start there now. */
  readonly open: readonly SchedulerNode[];
  /** Without what is promised to others. */
  readonly coming: readonly SchedulerNode[];
  /** Where each node is in the three views; made for the first change, and most passes change next to nothing. */
  private positions: ReadonlyMap<NodeName, number> | null = null;
  private readonly awaits: boolean;
  /** Attempts that are stopping, by node. */
  private readonly leaving = new Map<NodeName, Holder[]>();
  /** The preempted ones among them whose preemptor has not had its turn, by preemptor. */
  private readonly promised = new Map<JobId, Holder[]>();
  /** Placements are held in `coming`. */
  private holds = false;

  /** @param isWaiting whether a job will have its turn in this pass */
  constructor(
    nodes: readonly SchedulerNode[],
    holders: readonly Holder[],
    isWaiting: (id: JobId) => boolean,
  ) {
    this.free = [...nodes];
    this.open = [...nodes];
    this.awaits = nodes.some(({ awaitedUntilMs }) => awaitedUntilMs !== null);
    this.coming = this.awaits ? nodes.map(asIfBack) : [...nodes];
    for (const holder of holders) {
      const { state, preemptor } = holder;
      if (state === 'active') continue;
      if (preemptor === null || !isWaiting(preemptor)) {
        this.release([holder]);
        continue;
      }
      this.noteLeaving(holder);
      this.promised.set(preemptor, [...(this.promised.get(preemptor) ?? []), holder]);
    }
  }

  /** Nodes of these names, as far as a job may start there now. */
  openNamed(names: Iterable<NodeName>): readonly SchedulerNode[] {
    return [...names].flatMap((name) => this.open[this.positionOf(name)] ?? []);
  }

  /** Something is on its way out, or a node on its way back: `coming` is more than `free`. */
  get hasComing(): boolean {
    return this.awaits || this.leaving.size > 0;
  }

  /** Something that is free is held for a job that waits for the rest of its placement. */
  get isHolding(): boolean {
    return this.holds;
  }

  /** A job starts on these places. */
  start(tasks: readonly PlannedTask[]): void {
    for (const task of tasks) {
      const before = this.free[this.positionOf(task.node)];
      if (before === undefined) continue;
      const after = without(before, task);
      // On most nodes nothing is stopping, and the three views are one.
      for (const nodes of [this.free, this.open, this.coming])
        this.change(nodes, task.node, (node) => (node === before ? after : without(node, task)));
    }
  }

  /** A job waits for this placement, which is in `coming`. */
  hold(tasks: readonly PlannedTask[]): void {
    this.holds = true;
    for (const task of tasks) {
      this.change(this.coming, task.node, (node) => without(node, task));
      const left = this.coming[this.positionOf(task.node)];
      if (left !== undefined) this.change(this.open, task.node, (node) => asFarAs(node, left));
    }
  }

  /** These attempts will end, and what they release is promised to no job. */
  release(holders: readonly Holder[]): void {
    for (const holder of holders) {
      this.noteLeaving(holder);
      this.addToComing(holder);
    }
  }

  /** It is this job's turn: what is promised to it is part of `coming` from now on. */
  grantTo(preemptor: JobId): void {
    for (const holder of this.promised.get(preemptor) ?? []) this.addToComing(holder);
    this.promised.delete(preemptor);
  }

  /** For a job that outranks the preemptors and fits nowhere otherwise. */
  grantAll(): void {
    for (const preemptor of Array.from(this.promised.keys())) this.grantTo(preemptor);
  }

  /** Something is promised to a job that has not had its turn. */
  get hasPromised(): boolean {
    return this.promised.size > 0;
  }

  /** `coming` as it would be if everything that is promised were granted. */
  get comingWithPromised(): readonly SchedulerNode[] {
    const nodes = [...this.coming];
    for (const { tasks } of [...this.promised.values()].flat())
      for (const task of tasks) this.change(nodes, task.node, (node) => withReleased(node, task));
    return nodes;
  }

  private noteLeaving(holder: Holder): void {
    for (const { node } of holder.tasks) {
      const others = this.leaving.get(node);
      if (others === undefined) this.leaving.set(node, [holder]);
      else others.push(holder);
    }
  }

  private addToComing({ tasks }: Holder): void {
    for (const task of tasks) this.change(this.coming, task.node, (node) => withReleased(node, task));
  }

  /** @returns -1: there is no such node */
  private positionOf(name: NodeName): number {
    this.positions ??= new Map(this.free.map((node, position) => [node.name, position]));
    return this.positions.get(name) ?? -1;
  }

  private change(
    nodes: readonly SchedulerNode[],
    name: NodeName,
    by: (node: SchedulerNode) => SchedulerNode,
  ): void {
    const position = this.positionOf(name);
    const node = nodes[position];
    if (node !== undefined) (nodes as SchedulerNode[])[position] = by(node);
  }

  /** The attempts that are stopping on these nodes, the first submitted first. */
  leavingFrom(names: Iterable<NodeName>): readonly Holder[] {
    const holders = new Set([...names].flatMap((name) => this.leaving.get(name) ?? []));
    return [...holders].sort((a, b) => a.submitSeq - b.submitSeq);
  }
}

function asIfBack(node: SchedulerNode): SchedulerNode {
  return node.awaitedUntilMs === null ? node : { ...node, online: true };
}

function without(node: SchedulerNode, task: PlannedTask): SchedulerNode {
  const taken = new Set(task.gpuUuids);
  return {
    ...node,
    freeGpus: node.freeGpus.filter((gpu) => !taken.has(gpu.uuid)),
    freeCpus: node.freeCpus - task.cpus,
    freeMemoryMb: node.freeMemoryMb - task.memoryMb,
    freeTasks: node.freeTasks - 1,
  };
}

/** What of a node is also left in another view of it. */
function asFarAs(node: SchedulerNode, other: SchedulerNode): SchedulerNode {
  const left = new Set(other.freeGpus.map(({ uuid }) => uuid));
  return {
    ...node,
    freeGpus: node.freeGpus.filter(({ uuid }) => left.has(uuid)),
    freeCpus: Math.min(node.freeCpus, other.freeCpus),
    freeMemoryMb: Math.min(node.freeMemoryMb, other.freeMemoryMb),
    freeTasks: Math.min(node.freeTasks, other.freeTasks),
  };
}

function withReleased(node: SchedulerNode, task: PlannedTask): SchedulerNode {
  return {
    ...node,
    freeGpus: [...node.freeGpus, ...releasedGpus(node, task)],
    freeCpus: node.freeCpus + task.cpus,
    freeMemoryMb: node.freeMemoryMb + task.memoryMb,
    freeTasks: node.freeTasks + 1,
  };
}

/** What others could have once a task has ended: neither GPUs that are drained nor those that have vanished. */
export function releasedGpus({ inventory, drained }: SchedulerNode, task: PlannedTask): readonly Gpu[] {
  const held = new Set(task.gpuUuids);
  return inventory.gpus.filter(({ uuid }) => held.has(uuid) && !drained.gpuUuids.has(uuid));
}
