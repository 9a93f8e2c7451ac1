/**
 * One scheduling pass as a value: which queued jobs start now, on which nodes and GPUs, which attempts are preempted for
 * them, and why the others wait.
 *
 * The order is strict priority with backfill. A job that does not fit is passed over, so that small jobs use what a large
 * gang leaves. A job that will fit once attempts have ended that are stopping, or that it preempts, has its placement held.
 * A gang that may preempt nobody must not starve: once it has waited `reserveAfterMs`, the nodes that need the fewest
 * releases for it are reserved, and nothing behind it in the queue is placed there. One reservation at a time is enough for
 * every gang to get its turn, and keeps the rest of the cluster busy.
 */
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { Resume } from '@muster/common/views';
import { demandKeyOf, driverOf, type JobDemand, jobDemand } from './capacity.ts';
import { fit, whyNot } from './fit.ts';
import { queueOrder } from './order.ts';
import { PassCapacity } from './passCapacity.ts';
import { resumeOn, whyPinned } from './pin.ts';
import { type PassState, type Preemption, type PreemptionPlan, planPreemption, tasksOf } from './preempt.ts';
import { Preemptible } from './preemptible.ts';
import { noObstacles, reasonBeforeResources, reasonOfArray, type WaitReason } from './reasons.ts';
import { nodesToReserve } from './reserve.ts';
import {
  noHistory,
  type PlacementHistory,
  type PlannedTask,
  type QueuedJob,
  type SchedulerView,
} from './view.ts';

/** Short waits resolve by themselves; reserving for them would leave GPUs idle for nothing. */
export const reserveAfterMs = 60_000;

/** Names everything; carrying it out leaves nothing to choose. */
export type Decision =
  /** Tasks by node rank: as many as fit now, of those that the job can use. */
  | {
      readonly kind: 'start';
      readonly jobId: JobId;
      readonly tasks: readonly PlannedTask[];
      /** The checkpoint that the attempt resumes from. null: none. */
      readonly resume: Resume | null;
      /** The paths between its nodes are measured before it is released. */
      readonly preflight: boolean;
    }
  | (Preemption & { readonly kind: 'preempt' })
  /** Where the job will start once others have ended. What of it is free already is given to no job behind it. */
  | { readonly kind: 'hold'; readonly jobId: JobId; readonly tasks: readonly PlannedTask[] }
  | { readonly kind: 'reserve'; readonly jobId: JobId; readonly nodes: readonly NodeName[] }
  /** `why` looks at each node, and runs only for jobs whose reason is requested: it counts what the whole pass has taken. */
  | { readonly kind: 'wait'; readonly jobId: JobId; readonly why: FindReason }
  /** The jobs that the pass saw of a group of equals all start. Another pass follows, for those of the group behind them. */
  | { readonly kind: 'again' };

/** The reason of a job that waits, found once. */
export type FindReason = () => WaitReason;

/** @param nowMs monotonic milliseconds */
export function plan(view: SchedulerView, nowMs: number): readonly Decision[] {
  return new Pass(view, nowMs).run();
}

class Pass implements PassState {
  private readonly queue: readonly QueuedJob[];
  private readonly nowMs: number;
  readonly capacity: PassCapacity;
  readonly preemptible: Preemptible;
  readonly reserved = new Set<NodeName>();
  // Capacity only shrinks during a pass, and later jobs may preempt no more than earlier ones: a demand that did not fit
  // once will not fit again, so a queue of ten thousand equal jobs costs one search.
  private readonly refusals = new Map<string, FindReason>();
  private readonly withoutPreemption = new Set<string>();
  // What could not be reserved for one cannot be for its equals either.
  private readonly unreservable = new Set<string>();
  private readonly decisions: Decision[] = [];

  /** Those that start in this pass included. */
  private readonly arraysAtWork: Map<ArrayId, number>;

  constructor({ nodes, queue, holders, arraysAtWork }: SchedulerView, nowMs: number) {
    this.arraysAtWork = new Map(arraysAtWork);
    this.queue = [...queue].sort(queueOrder);
    this.nowMs = nowMs;
    const preemptors = new Set(holders.map(({ preemptor }) => preemptor));
    const waiting = new Set(
      queue.flatMap((job) =>
        preemptors.has(job.id) && reasonBeforeResources(job, nowMs) === null ? [job.id] : [],
      ),
    );
    this.capacity = new PassCapacity(nodes, holders, (id) => waiting.has(id));
    this.preemptible = new Preemptible(holders);
  }

  run(): readonly Decision[] {
    for (const job of this.queue) {
      const blocked = reasonBeforeResources(job, this.nowMs) ?? reasonOfArray(job, this.arraysAtWork);
      if (blocked === null) this.place(job);
      else this.decisions.push({ kind: 'wait', jobId: job.id, why: () => blocked });
      const last = this.decisions.at(-1);
      if (job.equals !== null && last?.kind === 'start' && last.jobId === job.id) {
        this.decisions.push({ kind: 'again' });
        break;
      }
    }
    return this.decisions;
  }

  private place(job: QueuedJob): void {
    this.capacity.grantTo(job.id);
    const history = this.historyOf(job);
    const ownKey = ownKeyOf(job, history);
    const refusal = this.startOrRefuse(job, history, ownKey);
    if (refusal === null) return;
    const preemption = this.preemptionFor(job, history, ownKey, refusal);
    if (preemption !== null) {
      const { preemptions, places, why } = preemption;
      // An array must not preempt for more of its jobs than may run at the same time.
      this.noteAtWork(job);
      for (const each of preemptions) this.decisions.push({ kind: 'preempt', ...each });
      this.decisions.push({ kind: 'wait', jobId: job.id, why });
      this.decisions.push({ kind: 'hold', jobId: job.id, tasks: places });
      return;
    }
    this.decisions.push({ kind: 'wait', jobId: job.id, why: refusal });
    this.reserve(job, history, ownKey);
  }

  private noteAtWork({ array }: QueuedJob): void {
    if (array !== null) this.arraysAtWork.set(array, (this.arraysAtWork.get(array) ?? 0) + 1);
  }

  private historyOf({ waitingSinceMs, excludedNodes, pin }: QueuedJob): PlacementHistory {
    return { excludedNodes, pin, waitedLong: this.nowMs - waitingSinceMs >= reserveAfterMs };
  }

  /** @returns why not; null when it starts */
  private startOrRefuse(job: QueuedJob, history: PlacementHistory, ownKey: string): FindReason | null {
    const { capacity, reserved } = this;
    const demandKey = demandKeyOf(job.spec);
    const known =
      history.pin === null ? (this.refusals.get(demandKey) ?? this.refusals.get(ownKey)) : undefined;
    if (known !== undefined) return known;
    const demand = jobDemand(job.spec.resources, driverOf(job.spec));
    const pinned = this.pinned(demand, history);
    if (pinned !== null) return () => pinned;
    const placements = fit(capacity.open, demand, reserved, history);
    if (placements !== null) {
      const tasks = tasksOf(job, placements);
      capacity.start(tasks);
      this.noteAtWork(job);
      const resume = resumeOn(job.resumes, tasks);
      const preflight = placements.some(({ node }) => node.needsPreflight);
      this.decisions.push({ kind: 'start', jobId: job.id, tasks, resume, preflight });
      return null;
    }
    if (history.pin !== null) return once(() => whyNot(capacity.open, demand, reserved, history));
    // If the job would not fit on the excluded nodes either, their exclusion is not the reason why it waits.
    const isOwn = history.excludedNodes.size > 0 && fit(capacity.open, demand, reserved) !== null;
    const refusal = once(() => {
      // What is held for a job ahead is not in use, so what is in use is counted on all that is free.
      const { free, isHolding } = capacity;
      const isHeld = isHolding && fit(free, demand, reserved, history) !== null;
      return isHeld ? heldForAnother : whyNot(free, demand, reserved, isOwn ? history : noHistory);
    });
    this.refusals.set(isOwn ? ownKey : demandKey, refusal);
    return refusal;
  }

  /** The reason of a job that waits for the nodes of its checkpoint. It depends on no other job. */
  private pinned(demand: JobDemand, { pin }: PlacementHistory): WaitReason | null {
    if (pin === null) return null;
    return whyPinned(this.capacity.openNamed(pin.nodes), this.reserved, demand, pin);
  }

  private preemptionFor(
    job: QueuedJob,
    history: PlacementHistory,
    ownKey: string,
    refusal: FindReason,
  ): PreemptionPlan | null {
    if (this.withoutPreemption.has(ownKey)) return null;
    const preemption = planPreemption(job, history, demandKeyOf(job.spec), refusal, this);
    if (preemption === null) this.withoutPreemption.add(ownKey);
    return preemption;
  }

  private reserve({ id, spec }: QueuedJob, history: PlacementHistory, ownKey: string): void {
    const { reserved, unreservable } = this;
    if (!history.waitedLong || reserved.size > 0 || unreservable.has(ownKey)) return;
    const nodes = nodesToReserve(this.capacity.open, jobDemand(spec.resources, driverOf(spec)), history);
    for (const name of nodes) reserved.add(name);
    if (nodes.length > 0) this.decisions.push({ kind: 'reserve', jobId: id, nodes });
    else unreservable.add(ownKey);
  }
}

function once(find: FindReason): FindReason {
  let found: WaitReason | null = null;
  return () => (found ??= find());
}

const heldForAnother: WaitReason = {
  kind: 'reserved',
  by: 'ahead',
  obstacles: noObstacles,
};

/** Equal for jobs that also exclude the same nodes and are pinned to the same ones, because a reason names them. */
function ownKeyOf({ spec }: QueuedJob, { excludedNodes, pin, waitedLong }: PlacementHistory): string {
  const key = demandKeyOf(spec);
  if (excludedNodes.size === 0 && pin === null) return key;
  const failures = [...excludedNodes].map(([node, cause]) => `${node} ${cause}`);
  const home = pin === null ? '' : [...pin.nodes].sort().join();
  return `${key} ${waitedLong} ${failures.sort().join()} ${home}`;
}
