/**
 * What is left of the nodes during one pass, in three views that only differ while attempts are on their way out.
 *
 * `free`: held by nobody. `open`: of that, what a job may start on now. `coming`: what will be there once the attempts
 * that are stopping have ended and the nodes that are awaited are back: after a start of ours, nodes are heard one by one,
 * and what is on its way out of those that are still away must not be asked of others. A job that fits into `coming` is
 * kept its place there; what it needs of it that is free already leaves `open`, so that nothing behind it in the queue
 * moves in while the rest is being cleared for it.
 *
 * What an attempt leaves that gave way to a job is for that job, its heir, until the heir has had its turn: were it
 * anybody's, the jobs of the next pass might be laid out in another way than when the victims were chosen, and one of
 * them would have to ask for more.
 */
import type { Gpu } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import type { Holder, NodeView, PlannedTask } from './view.ts';

type NodesByName = Map<NodeName, NodeView>;

export class Room {
  private readonly freeNodes: NodesByName;
  private readonly openNodes: NodesByName;
  private readonly comingNodes: NodesByName;
  private readonly awaits: boolean;
  /** Attempts that will end without being asked again, by node. */
  private readonly leaving = new Map<NodeName, Holder[]>();
  /** Of these, those that have an heir who has not had its turn. */
  private readonly inherited = new Map<JobId, Holder[]>();
  /** Places are being kept in `coming`. */
  private keeps = false;

  /** @param isWaiting whether a job will have its turn in this pass */
  constructor(nodes: readonly NodeView[], holders: readonly Holder[], isWaiting: (id: JobId) => boolean) {
    this.freeNodes = new Map(nodes.map((node) => [node.name, node]));
    this.openNodes = new Map(this.freeNodes);
    this.comingNodes = new Map(nodes.map((node) => [node.name, asIfBack(node)]));
    this.awaits = nodes.some(({ awaitedUntilMs }) => awaitedUntilMs !== null);
    for (const holder of holders) {
      const { state, heir } = holder;
      if (state === 'active') continue;
      if (heir === null || !isWaiting(heir)) {
        this.letGo([holder]);
        continue;
      }
      this.noteLeaving(holder);
      this.inherited.set(heir, [...(this.inherited.get(heir) ?? []), holder]);
    }
  }

  get free(): readonly NodeView[] {
    return [...this.freeNodes.values()];
  }

  get open(): readonly NodeView[] {
    return [...this.openNodes.values()];
  }

  /** Without what others are to inherit. */
  get coming(): readonly NodeView[] {
    return [...this.comingNodes.values()];
  }

  /** Nodes of these names, as far as a job may start there now. */
  openNamed(names: Iterable<NodeName>): readonly NodeView[] {
    return [...names].flatMap((name) => this.openNodes.get(name) ?? []);
  }

  /** Something is on its way out, or a node on its way back: `coming` is more than `free`. */
  get hasComing(): boolean {
    return this.awaits || this.leaving.size > 0;
  }

  /** Something that is free is kept for a job that waits for the rest of its place. */
  get isKeeping(): boolean {
    return this.keeps;
  }

  /** A job starts on these places. */
  start(tasks: readonly PlannedTask[]): void {
    for (const task of tasks) {
      const before = this.freeNodes.get(task.node);
      if (before === undefined) continue;
      const after = without(before, task);
      // On most nodes nothing is stopping, and the three views are one.
      for (const nodes of [this.freeNodes, this.openNodes, this.comingNodes]) {
        change(nodes, task.node, (node) => (node === before ? after : without(node, task)));
      }
    }
  }

  /** A job waits for these places, which are in `coming`. */
  keep(tasks: readonly PlannedTask[]): void {
    this.keeps = true;
    for (const task of tasks) {
      change(this.comingNodes, task.node, (node) => without(node, task));
      const left = this.comingNodes.get(task.node);
      if (left !== undefined) change(this.openNodes, task.node, (node) => asFarAs(node, left));
    }
  }

  /** These attempts are going to end, and what they leave is for whoever comes next. */
  letGo(holders: readonly Holder[]): void {
    for (const holder of holders) {
      this.noteLeaving(holder);
      this.addToComing(holder);
    }
  }

  /** It is this job's turn: what it inherits is part of `coming` from now on, for it first. */
  handOver(heir: JobId): void {
    for (const holder of this.inherited.get(heir) ?? []) this.addToComing(holder);
    this.inherited.delete(heir);
  }

  /** For a job that outranks them and has no other way. */
  handOverAll(): void {
    for (const heir of [...this.inherited.keys()]) this.handOver(heir);
  }

  /** Someone is still to inherit something. */
  get hasHeirs(): boolean {
    return this.inherited.size > 0;
  }

  /** `coming` as it would be if everything were handed over. */
  get comingForAll(): readonly NodeView[] {
    const nodes = new Map(this.comingNodes);
    for (const { tasks } of [...this.inherited.values()].flat()) {
      for (const task of tasks) change(nodes, task.node, (node) => withReleased(node, task));
    }
    return [...nodes.values()];
  }

  private noteLeaving(holder: Holder): void {
    for (const { node } of holder.tasks) {
      const others = this.leaving.get(node);
      if (others === undefined) this.leaving.set(node, [holder]);
      else others.push(holder);
    }
  }

  private addToComing({ tasks }: Holder): void {
    for (const task of tasks) change(this.comingNodes, task.node, (node) => withReleased(node, task));
  }

  /** The attempts that are on their way out of these nodes, the first submitted first. */
  leavingFrom(names: Iterable<NodeName>): readonly Holder[] {
    const holders = new Set([...names].flatMap((name) => this.leaving.get(name) ?? []));
    return [...holders].sort((a, b) => a.submitSeq - b.submitSeq);
  }
}

function asIfBack(node: NodeView): NodeView {
  return node.awaitedUntilMs === null ? node : { ...node, online: true };
}

function change(nodes: NodesByName, name: NodeName, by: (node: NodeView) => NodeView): void {
  const node = nodes.get(name);
  if (node !== undefined) nodes.set(name, by(node));
}

function without(node: NodeView, task: PlannedTask): NodeView {
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
function asFarAs(node: NodeView, other: NodeView): NodeView {
  const left = new Set(other.freeGpus.map(({ uuid }) => uuid));
  return {
    ...node,
    freeGpus: node.freeGpus.filter(({ uuid }) => left.has(uuid)),
    freeCpus: Math.min(node.freeCpus, other.freeCpus),
    freeMemoryMb: Math.min(node.freeMemoryMb, other.freeMemoryMb),
    freeTasks: Math.min(node.freeTasks, other.freeTasks),
  };
}

function withReleased(node: NodeView, task: PlannedTask): NodeView {
  return {
    ...node,
    freeGpus: [...node.freeGpus, ...releasedGpus(node, task)],
    freeCpus: node.freeCpus + task.cpus,
    freeMemoryMb: node.freeMemoryMb + task.memoryMb,
    freeTasks: node.freeTasks + 1,
  };
}

/** What others could have once a task has ended: neither GPUs that are drained nor those that have vanished. */
export function releasedGpus({ inventory, drained }: NodeView, task: PlannedTask): readonly Gpu[] {
  const held = new Set(task.gpuUuids);
  return inventory.gpus.filter(({ uuid }) => held.has(uuid) && !drained.gpuUuids.has(uuid));
}
