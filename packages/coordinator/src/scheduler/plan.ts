/**
 * One scheduling pass as a value: which queued jobs start now, on which nodes and GPUs, who gives way to them, and why the
 * others wait.
 *
 * Strict priority order with backfill: a job that does not fit is passed over, so that small jobs use what a large gang
 * leaves. One that fits once others have ended that are stopping, or that have to give way to it, is kept its place. So
 * that a gang does not starve without anybody giving way, once it has waited `reserveAfterMs` the nodes nearest to being
 * free for it are reserved: nothing behind it in the queue is placed there. One reservation at a time is enough for every
 * gang to get its turn, and keeps the rest of the cluster busy.
 */
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import { driverOf, jobDemand } from './capacity.ts';
import { fit } from './fit.ts';
import { queueOrder } from './order.ts';
import { whyPinned } from './pin.ts';
import { findWay, type Means, tasksOf, type Way } from './preempt.ts';
import { Preemptible } from './preemptible.ts';
import { nodesToReserve } from './reserve.ts';
import { Room } from './room.ts';
import type { ClusterView, JobPast, PlannedTask, QueuedJob } from './view.ts';
import { reasonBeforeResources, reasonOfArray } from './waits.ts';

/** Short waits resolve by themselves; reserving for them would leave GPUs idle for nothing. */
export const reserveAfterMs = 60_000;

/** Names everything; carrying it out leaves nothing to choose. */
export type Decision =
  /** Tasks by node rank: as many as fit now, of those that the job can use. */
  | { readonly kind: 'start'; readonly jobId: JobId; readonly tasks: readonly PlannedTask[] }
  /** The attempt of this job ends, as soon as it has saved, for the sake of another. */
  | {
      readonly kind: 'preempt';
      readonly jobId: JobId;
      readonly by: JobId;
      /** Who, and why this one. */
      readonly message: string;
      readonly lostGpuSeconds: number;
    }
  /** Its place once others have ended; what of it is free by now goes to nobody behind it. */
  | { readonly kind: 'keep'; readonly jobId: JobId; readonly tasks: readonly PlannedTask[] }
  | { readonly kind: 'reserve'; readonly jobId: JobId; readonly nodes: readonly NodeName[] }
  | { readonly kind: 'wait'; readonly jobId: JobId; readonly reason: PendingReason }
  /** All that the pass saw of equal jobs start: those behind them come first in another pass, and nobody passes them. */
  | { readonly kind: 'again' };

/** @param nowMs monotonic milliseconds */
export function plan(view: ClusterView, nowMs: number): readonly Decision[] {
  return new Pass(view, nowMs).run();
}

class Pass implements Means {
  private readonly queue: readonly QueuedJob[];
  private readonly nowMs: number;
  readonly room: Room;
  readonly preemptible: Preemptible;
  readonly reserved = new Set<NodeName>();
  // Capacity only shrinks during a pass, and those who come later may preempt no more than those before them: what did
  // not fit once will not fit again, so a queue of ten thousand equal jobs costs one search.
  private readonly refusals = new Map<string, PendingReason>();
  private readonly withoutWay = new Set<string>();
  // What could not be reserved for one cannot be for its equals either.
  private readonly unreservable = new Set<string>();
  private readonly decisions: Decision[] = [];

  /** Those that start in this pass included. */
  private readonly arraysAtWork: Map<ArrayId, number>;

  constructor({ nodes, queue, holders, arraysAtWork }: ClusterView, nowMs: number) {
    this.arraysAtWork = new Map(arraysAtWork);
    this.queue = [...queue].sort(queueOrder);
    this.nowMs = nowMs;
    const waiting = new Set(
      queue.filter((job) => reasonBeforeResources(job, nowMs) === null).map(({ id }) => id),
    );
    this.room = new Room(nodes, holders, (id) => waiting.has(id));
    this.preemptible = new Preemptible(holders);
  }

  run(): readonly Decision[] {
    for (const job of this.queue) {
      const blocked = reasonBeforeResources(job, this.nowMs) ?? reasonOfArray(job, this.arraysAtWork);
      if (blocked === null) this.place(job);
      else this.decisions.push({ kind: 'wait', jobId: job.id, reason: blocked });
      const last = this.decisions.at(-1);
      if (job.equals !== null && last?.kind === 'start' && last.jobId === job.id) {
        this.decisions.push({ kind: 'again' });
        break;
      }
    }
    return this.decisions;
  }

  private place(job: QueuedJob): void {
    this.room.handOver(job.id);
    const past = this.pastOf(job);
    const ownKey = ownKeyOf(job, past);
    const refusal = this.startOrRefuse(job, past, ownKey);
    if (refusal === null) return;
    const way = this.wayFor(job, past, ownKey, refusal);
    if (way !== null) {
      const { preemptions, places, reason } = way;
      // What gives way to it must not have done so for more jobs than may start.
      this.noteAtWork(job);
      for (const { victim, ...each } of preemptions) {
        this.decisions.push({ kind: 'preempt', jobId: victim, by: job.id, ...each });
      }
      this.decisions.push({ kind: 'wait', jobId: job.id, reason });
      this.decisions.push({ kind: 'keep', jobId: job.id, tasks: places });
      return;
    }
    this.decisions.push({ kind: 'wait', jobId: job.id, reason: refusal });
    this.reserve(job, past, ownKey, refusal);
  }

  private noteAtWork({ array }: QueuedJob): void {
    if (array !== null) this.arraysAtWork.set(array, (this.arraysAtWork.get(array) ?? 0) + 1);
  }

  private pastOf({ waitingSinceMs, leftOut, pin }: QueuedJob): JobPast {
    return { leftOut, pin, waitedLong: this.nowMs - waitingSinceMs >= reserveAfterMs };
  }

  /** @returns why not; null when it starts */
  private startOrRefuse(job: QueuedJob, past: JobPast, ownKey: string): PendingReason | null {
    const demandKey = demandKeyOf(job.spec);
    const known =
      past.pin === null
        ? (this.refusals.get(demandKey) ?? this.refusals.get(ownKey))
        : this.pinned(job, past);
    if (known !== undefined && known !== null) return known;
    const { room, reserved } = this;
    const { resources } = job.spec;
    const driver = driverOf(job.spec);
    const result = fit(room.open, resources, driver, reserved, past);
    if (result.kind === 'fits') {
      const tasks = tasksOf(job, result.placements);
      room.start(tasks);
      this.noteAtWork(job);
      this.decisions.push({ kind: 'start', jobId: job.id, tasks });
      return null;
    }
    if (past.pin !== null) return result.reason;
    // Where it would not fit on the nodes that it failed on either, they are not what it waits for.
    const anywhere = past.leftOut.size === 0 ? result : fit(room.open, resources, driver, reserved);
    const refusal = anywhere.kind === 'waits' ? anywhere.reason : result.reason;
    const isKept = room.isKeeping && fit(room.free, resources, driver, reserved, past).kind === 'fits';
    const reason = isKept ? keptForAnother : refusal;
    this.refusals.set(anywhere.kind === 'waits' ? demandKey : ownKey, reason);
    return reason;
  }

  /** Of jobs that wait for the place of their checkpoint each has a reason of its own: without a look at the others. */
  private pinned({ spec }: QueuedJob, { pin }: JobPast): PendingReason | null {
    if (pin === null) return null;
    const homes = this.room.openNamed(pin.nodes);
    return whyPinned(homes, this.reserved, jobDemand(spec.resources, driverOf(spec)), pin);
  }

  private wayFor(job: QueuedJob, past: JobPast, ownKey: string, refusal: PendingReason): Way | null {
    if (refusal.kind === 'never_fits' || this.withoutWay.has(ownKey)) return null;
    const way = findWay(job, past, demandKeyOf(job.spec), refusal, this);
    if (way === null) this.withoutWay.add(ownKey);
    return way;
  }

  private reserve({ id, spec }: QueuedJob, past: JobPast, ownKey: string, refusal: PendingReason): void {
    const { reserved, unreservable } = this;
    const mayReserve = past.waitedLong && reserved.size === 0 && refusal.kind !== 'never_fits';
    if (!mayReserve || unreservable.has(ownKey)) return;
    const nodes = nodesToReserve(this.room.open, jobDemand(spec.resources, driverOf(spec)), past);
    for (const name of nodes) reserved.add(name);
    if (nodes.length > 0) this.decisions.push({ kind: 'reserve', jobId: id, nodes });
    else unreservable.add(ownKey);
  }
}

const keptForAnother: PendingReason = {
  kind: 'reserved',
  message: 'the free resources are reserved for a job ahead of it that waits for more',
  remedy: null,
};

/** Specs never change, and each is asked for in every pass that its job waits: ten thousand times the same text. */
const demandKeys = new WeakMap<JobSpec, string>();

/** Equal for jobs that the same nodes would do for, were it not for what happened to them. */
function demandKeyOf(spec: JobSpec): string {
  let key = demandKeys.get(spec);
  if (key === undefined) {
    key = JSON.stringify([driverOf(spec), spec.resources]);
    demandKeys.set(spec, key);
  }
  return key;
}

/** The same for jobs that failed on the same nodes and are bound to the same, too: a reason names them. */
function ownKeyOf({ spec }: QueuedJob, { leftOut, pin, waitedLong }: JobPast): string {
  const key = demandKeyOf(spec);
  if (leftOut.size === 0 && pin === null) return key;
  const failures = [...leftOut].map(([node, cause]) => `${node} ${cause}`);
  const home = pin === null ? '' : [...pin.nodes].sort().join();
  return `${key} ${waitedLong} ${failures.sort().join()} ${home}`;
}
