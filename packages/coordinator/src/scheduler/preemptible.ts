/** Attempts that may be preempted, as seen from the nodes that they hold something of. */
import type { NodeName } from '@muster/common/ids';
import { acceptableGpus, type JobDemand, lackOf, type Share, sum } from './capacity.ts';
import { releasedGpus } from './passCapacity.ts';
import type { Holder, SchedulerNode } from './view.ts';

/**
 * What it costs to preempt an attempt, and sums of that: whole numbers, so that equal sums are equal. The parts are compared from
 * the first to the last; less is better. Every attempt costs something: no choice is cheaper than a part of it.
 */
export interface Cost {
  readonly gpuSeconds: number;
  /** Of two that lose as much, fewer jobs and those of lower priority; */
  readonly priority: number;
  /** and then those that were submitted later. */
  readonly seniority: number;
}

export const nothing: Cost = { gpuSeconds: 0, priority: 0, seniority: 0 };

/** @param youngest the highest `submitSeq` of all that are compared */
function costOf({ lostGpuSeconds, priority, submitSeq }: Holder, youngest: number): Cost {
  return { gpuSeconds: lostGpuSeconds, priority: priority + 1, seniority: youngest + 1 - submitSeq };
}

export function plus(a: Cost, b: Cost): Cost {
  return {
    gpuSeconds: a.gpuSeconds + b.gpuSeconds,
    priority: a.priority + b.priority,
    seniority: a.seniority + b.seniority,
  };
}

/** Negative when `a` is cheaper. */
function compareCosts(a: Cost, b: Cost): number {
  return a.gpuSeconds - b.gpuSeconds || a.priority - b.priority || a.seniority - b.seniority;
}

export function isCheaper(a: Cost, b: Cost): boolean {
  return compareCosts(a, b) < 0;
}

const noShare: Share = { gpus: 0, cpus: 0, memoryMb: 0, tasks: 0 };

/** As in `hasFreeCpus`. */
const cpuTolerance = 1e-6;

export interface Candidate {
  readonly holder: Holder;
  readonly cost: Cost;
  readonly share: Share;
}

/** A node that could be made to do for one task of a job. */
export interface Place {
  readonly node: SchedulerNode;
  readonly lack: Share;
  /** The cheapest first. */
  readonly candidates: readonly Candidate[];
  /** The cheapest option, if the full cost of each counted for this node alone. */
  readonly option: Option;
}

/** Attempts to preempt so that one node has room. */
export interface Option {
  readonly cost: Cost;
  readonly victims: readonly Holder[];
}

/** Steps of one search on one node: more than its dozen of jobs need. */
const stepsMax = 4_000;

/**
 * Those that are left during a pass. What was found out about a node is kept until something of it changes: for a
 * thousand equal jobs each node is looked at once, and again when one of them has taken something of it.
 */
export class Preemptible {
  private readonly byNode = new Map<NodeName, Set<Holder>>();
  private readonly lowest: number;
  private readonly youngest: number;
  private readonly places = new Map<string, WeakMap<SchedulerNode, Place | null>>();

  constructor(holders: readonly Holder[]) {
    const allowed = holders.filter(({ state, isPreemptible }) => state === 'active' && isPreemptible);
    this.lowest = allowed.reduce(
      (least, { priority }) => Math.min(least, priority),
      Number.POSITIVE_INFINITY,
    );
    this.youngest = allowed.reduce((most, { submitSeq }) => Math.max(most, submitSeq), 0);
    for (const holder of allowed) {
      for (const { node } of holder.tasks) {
        const others = this.byNode.get(node);
        if (others === undefined) this.byNode.set(node, new Set([holder]));
        else others.add(holder);
      }
    }
  }

  /** Without a look at any of them: on most clusters no job outranks anything, and ten thousand ask. */
  isOutrankedBy(priority: number): boolean {
    return priority > this.lowest;
  }

  take(victims: readonly Holder[]): void {
    for (const victim of victims) for (const { node } of victim.tasks) this.byNode.get(node)?.delete(victim);
  }

  /**
   * Those of the nodes that could be made to do by preempting what is of lower priority.
   * @param demandKey equal for equal demands
   */
  placesOf(
    nodes: readonly SchedulerNode[],
    demand: JobDemand,
    demandKey: string,
    priority: number,
  ): readonly Place[] {
    const key = `${priority} ${demandKey}`;
    const known = this.places.get(key) ?? new WeakMap<SchedulerNode, Place | null>();
    this.places.set(key, known);
    return nodes.flatMap((node) => {
      let place = known.get(node);
      if (place === undefined) {
        place = this.placeOn(node, demand, priority);
        known.set(node, place);
      }
      return place ?? [];
    });
  }

  private placeOn(node: SchedulerNode, demand: JobDemand, priority: number): Place | null {
    const lack = lackOf(node, demand);
    const candidates = [...(this.byNode.get(node.name) ?? [])]
      .filter((holder) => outranks(priority, holder))
      .map((holder) => this.candidate(holder, node, demand))
      .sort(cheapestFirst);
    const option = cheapestOption(lack, candidates);
    return option === null ? null : { node, lack, candidates, option };
  }

  private candidate(holder: Holder, node: SchedulerNode, { resources }: JobDemand): Candidate {
    const tasks = holder.tasks.filter((task) => task.node === node.name);
    const shares = tasks.map((task) => ({
      gpus: acceptableGpus(releasedGpus(node, task), resources).length,
      cpus: task.cpus,
      memoryMb: task.memoryMb,
      tasks: 1,
    }));
    return { holder, cost: costOf(holder, this.youngest), share: shares.reduce(sum, noShare) };
  }
}

export function cheapestFirst(a: { readonly cost: Cost }, b: { readonly cost: Cost }): number {
  return compareCosts(a.cost, b.cost);
}

function isNothing({ gpus, cpus, memoryMb, tasks }: Share): boolean {
  return gpus <= 0 && cpus < cpuTolerance && memoryMb <= 0 && tasks <= 0;
}

function less(a: Share, b: Share): Share {
  return {
    gpus: a.gpus - b.gpus,
    cpus: a.cpus - b.cpus,
    memoryMb: a.memoryMb - b.memoryMb,
    tasks: a.tasks - b.tasks,
  };
}

/** What is still lacking after these were preempted. */
export function lackWithout(lack: Share, gone: readonly Candidate[]): Share {
  return gone.reduce((left, { share }) => less(left, share), lack);
}

export function isMet(lack: Share, by: readonly Candidate[]): boolean {
  return isNothing(lackWithout(lack, by));
}

/**
 * The cheapest of these that make up for what is lacking; null when all of them do not. After `stepsMax` steps, the cheapest
 * that was found.
 * @param candidates the cheapest first
 */
export function cheapestOption(lack: Share, candidates: readonly Candidate[]): Option | null {
  /** What all from this one on give back. */
  const rest = [noShare];
  for (const { share } of candidates.toReversed()) rest.push(sum(share, rest.at(-1) ?? noShare));
  rest.reverse();
  let best: Option | null = null;
  let stepsLeft = stepsMax;
  const visit = (index: number, left: Share, cost: Cost, taken: readonly Candidate[]): void => {
    stepsLeft -= 1;
    if (best !== null && (stepsLeft <= 0 || !isCheaper(cost, best.cost))) return;
    if (isNothing(left)) {
      best = { cost, victims: taken.map(({ holder }) => holder) };
      return;
    }
    const candidate = candidates[index];
    if (candidate === undefined || !isNothing(less(left, rest[index] ?? noShare))) return;
    // Cheap ones first: the first choice that is found is the greedy one.
    visit(index + 1, less(left, candidate.share), plus(cost, candidate.cost), [...taken, candidate]);
    visit(index + 1, left, cost, taken);
  };
  visit(0, lack, nothing, []);
  return best;
}

/** Whether a job of this priority may preempt the holder: only jobs of lower priority are preempted. */
export function outranks(priority: number, holder: Pick<Holder, 'priority'>): boolean {
  return holder.priority < priority;
}
