/**
 * Nodes as the scheduler sees them, with what the tasks of each leave free. A job or a node that changes is another object, so
 * only the nodes of what is another object than in the pass before are looked at again.
 */
import { drainedBy } from '@muster/common/conditions';
import { assertInvariant } from '@muster/common/errors';
import type { Gpu, NodeInventory } from '@muster/common/hardware';
import type { JobId, NodeName } from '@muster/common/ids';
import { currentAttempt, type Job, type Node } from '../model.ts';
import { nodeTasksMax } from '../scheduler/capacity.ts';
import { type DrainedView, notDrained, type SchedulerNode } from '../scheduler/view.ts';

interface Use {
  readonly gpuUuids: Set<string>;
  cpus: number;
  memoryMb: number;
  tasks: number;
}

/** What else than jobs and the node itself its view depends on. */
interface NodeFacts {
  readonly online: boolean;
  /** @see SchedulerNode.awaitedUntilMs */
  readonly awaitedUntilMs: number | null;
  readonly orphaned: ReadonlySet<string>;
  readonly needsPreflight: boolean;
}

/** A view, and what it was made from. */
interface KnownView extends NodeFacts {
  readonly node: Node;
  readonly view: SchedulerNode;
}

export class NodeViews {
  /** The jobs that have attempts, as of the last pass. */
  private last: readonly Job[] = [];
  private readonly onNode = new Map<NodeName, Map<JobId, Job>>();
  private readonly known = new Map<NodeName, KnownView>();

  /**
   * @param holders every job that has an attempt
   * @throws {InvariantViolation} when two tasks hold one GPU
   */
  of(
    nodes: readonly Node[],
    holders: readonly Job[],
    factsOf: (node: NodeName) => NodeFacts,
  ): readonly SchedulerNode[] {
    this.follow(holders);
    const views = nodes.map((node) => this.viewOf(node, factsOf(node.name)));
    if (this.known.size > nodes.length) {
      const names = new Set(nodes.map(({ name }) => name));
      for (const name of this.known.keys()) if (!names.has(name)) this.known.delete(name);
    }
    return views;
  }

  private follow(holders: readonly Job[]): void {
    const { last } = this;
    const gone: Job[] = [];
    const come: Job[] = [];
    // Jobs keep their order from pass to pass, so almost all of them are where they were, or one place beside it.
    let [before, now] = [0, 0];
    while (before < last.length || now < holders.length) {
      const [old, job] = [last[before], holders[now]];
      const isSame = old === job;
      const hasGone = last[before + 1] === job;
      const hasCome = holders[now + 1] === old && !hasGone;
      if (!isSame && old !== undefined && !hasCome) gone.push(old);
      if (!isSame && job !== undefined && !hasGone) come.push(job);
      if (!hasCome || isSame) before += 1;
      if (!hasGone || isSame) now += 1;
    }
    this.last = holders;
    const [allGone, allCome] = [new Set(gone), new Set(come)];
    for (const job of gone) if (!allCome.has(job)) this.drop(job);
    for (const job of come) if (!allGone.has(job)) this.add(job);
  }

  private add(job: Job): void {
    for (const { node } of currentAttempt(job)?.tasks ?? []) {
      let jobs = this.onNode.get(node);
      if (jobs === undefined) this.onNode.set(node, (jobs = new Map()));
      jobs.set(job.id, job);
      this.known.delete(node);
    }
  }

  private drop(job: Job): void {
    for (const { node } of currentAttempt(job)?.tasks ?? []) {
      const jobs = this.onNode.get(node);
      jobs?.delete(job.id);
      if (jobs?.size === 0) this.onNode.delete(node);
      this.known.delete(node);
    }
  }

  private viewOf(node: Node, facts: NodeFacts): SchedulerNode {
    const known = this.known.get(node.name);
    if (known !== undefined && known.node === node && areEqual(known, facts)) return known.view;
    const view = nodeView(node, useOf(node.name, this.onNode.get(node.name)?.values() ?? []), facts);
    this.known.set(node.name, { node, view, ...facts });
    return view;
  }
}

function areEqual(a: NodeFacts, b: NodeFacts): boolean {
  const areNone = a.orphaned.size === 0 && b.orphaned.size === 0;
  return (
    a.online === b.online &&
    a.awaitedUntilMs === b.awaitedUntilMs &&
    a.needsPreflight === b.needsPreflight &&
    areNone
  );
}

/** A task holds what it was given until it has ended (G3 of docs/guarantees.md). */
export function useOf(name: NodeName, jobs: Iterable<Job>): Use {
  const use: Use = { gpuUuids: new Set(), cpus: 0, memoryMb: 0, tasks: 0 };
  for (const job of jobs) {
    for (const task of currentAttempt(job)?.tasks ?? []) {
      if (task.node !== name) continue;
      if (task.state === 'ended') continue;
      for (const uuid of task.gpuUuids) {
        assertInvariant(!use.gpuUuids.has(uuid), 'G3', `GPU ${uuid} on ${name} is allocated twice`);
        use.gpuUuids.add(uuid);
      }
      use.cpus += task.cpus;
      use.memoryMb += task.memoryMb;
      use.tasks += 1;
    }
  }
  return use;
}

function nodeView(
  node: Node,
  use: Use,
  { online, awaitedUntilMs, orphaned, needsPreflight }: NodeFacts,
): SchedulerNode {
  const { inventory } = node;
  const drained = drainedView(node);
  return {
    name: node.name,
    online,
    awaitedUntilMs,
    inventory,
    drained,
    freeGpus: freeGpusOf({ inventory, used: use.gpuUuids, drained: drained.gpuUuids, orphaned }),
    freeCpus: inventory.cpus - use.cpus,
    freeMemoryMb: inventory.memoryMb - use.memoryMb,
    freeTasks: nodeTasksMax - use.tasks,
    orphanedGpus: inventory.gpus.filter((gpu) => orphaned.has(gpu.uuid)).length,
    needsPreflight,
  };
}

interface GpusTaken {
  readonly inventory: NodeInventory;
  readonly used: ReadonlySet<string>;
  readonly drained: ReadonlySet<string>;
  readonly orphaned: ReadonlySet<string>;
}

/** The GPUs that new work may get: no task and no orphan has them, and no condition drains them. */
export function freeGpusOf({ inventory, used, drained, orphaned }: GpusTaken): readonly Gpu[] {
  return inventory.gpus.filter(({ uuid }) => !used.has(uuid) && !drained.has(uuid) && !orphaned.has(uuid));
}

/** What drains take from new work: conditions of the node, and a drain by a user. */
export function drainedView({ conditions, inventory, drain }: Node): DrainedView {
  // Of almost every node, in every pass.
  if (conditions.length === 0 && drain === null) return notDrained;
  const { node, gpuUuids } = drainedBy(conditions, inventory);
  if (!node && gpuUuids.size === 0 && drain === null) return notDrained;
  const responsible = conditions.filter((condition) => {
    const alone = drainedBy([condition], inventory);
    return node || drain !== null ? alone.node : alone.gpuUuids.size > 0;
  });
  return {
    node: node || drain !== null,
    gpuUuids,
    kinds: [...new Set(responsible.map(({ kind }) => kind))],
    drainReason: drain === null ? null : drain.reason || 'by hand',
  };
}
