/**
 * One scheduling pass as a value: which queued jobs start now, on which nodes and GPUs, and why the others wait.
 *
 * Strict priority order with backfill: a job that does not fit is passed over, so that small jobs use what a large gang
 * leaves. So that the gang does not starve, once it has waited `reserveAfterMs` the nodes nearest to being free for it
 * are reserved: nothing behind it in the queue is placed there. One reservation at a time is enough for every gang to
 * get its turn, and keeps the rest of the cluster busy.
 */
import type { JobId, NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import { jobDemand, taskDemand } from './capacity.ts';
import { fit } from './fit.ts';
import { queueOrder } from './order.ts';
import { nodesToReserve } from './reserve.ts';
import type { ClusterView, NodeView, QueuedJob } from './view.ts';

/** Short waits resolve by themselves; reserving for them would leave GPUs idle for nothing. */
export const reserveAfterMs = 60_000;

export interface PlannedTask {
  readonly node: NodeName;
  readonly gpuUuids: readonly string[];
  readonly cpus: number;
  readonly memoryMb: number;
}

/** Names everything; carrying it out leaves nothing to choose. */
export type Decision =
  /** Tasks by node rank: as many as fit now, of those that the job can use. */
  | { readonly kind: 'start'; readonly jobId: JobId; readonly tasks: readonly PlannedTask[] }
  | { readonly kind: 'reserve'; readonly jobId: JobId; readonly nodes: readonly NodeName[] }
  | { readonly kind: 'wait'; readonly jobId: JobId; readonly reason: PendingReason };

/** @param nowMs monotonic milliseconds */
export function plan(view: ClusterView, nowMs: number): readonly Decision[] {
  const nodes = new Map(view.nodes.map((node) => [node.name, node]));
  const reserved = new Set<NodeName>();
  // Capacity only shrinks during a pass: what did not fit once will not fit again, so a queue of ten thousand equal
  // jobs costs one search.
  const refusals = new Map<string, PendingReason>();
  // What could not be reserved for one cannot be for its equals either.
  const unreservable = new Set<string>();
  const decisions: Decision[] = [];

  for (const job of [...view.queue].sort(queueOrder)) {
    const blocked = reasonBeforeResources(job, nowMs);
    if (blocked !== null) {
      decisions.push({ kind: 'wait', jobId: job.id, reason: blocked });
      continue;
    }
    const { resources, image } = job.spec;
    const driver = image === null ? 'process' : 'docker';
    const waitedLong = nowMs - job.waitingSinceMs >= reserveAfterMs;
    const demandKey = demandKeyOf(job.spec);
    const ownKey = ownKeyOf(job, waitedLong);
    let refusal = refusals.get(demandKey) ?? refusals.get(ownKey);
    if (refusal === undefined) {
      const result = fit([...nodes.values()], resources, driver, reserved, job.leftOut, waitedLong);
      if (result.kind === 'fits') {
        const tasks = result.placements.map(({ node, gpus }) => {
          const { cpus, memoryMb } = taskDemand(resources);
          const task: PlannedTask = {
            node: node.name,
            gpuUuids: gpus.map((gpu) => gpu.uuid),
            cpus,
            memoryMb,
          };
          nodes.set(node.name, without(node, task));
          return task;
        });
        decisions.push({ kind: 'start', jobId: job.id, tasks });
        continue;
      }
      // Where it would not fit on the nodes that it failed on either, they are not what it waits for.
      const anywhere =
        job.leftOut.size === 0 ? result : fit([...nodes.values()], resources, driver, reserved);
      refusal = anywhere.kind === 'waits' ? anywhere.reason : result.reason;
      refusals.set(anywhere.kind === 'waits' ? demandKey : ownKey, refusal);
    }
    decisions.push({ kind: 'wait', jobId: job.id, reason: refusal });
    const mayReserve = waitedLong && reserved.size === 0 && refusal.kind !== 'never_fits';
    if (!mayReserve || unreservable.has(ownKey)) continue;
    const kept = nodesToReserve([...nodes.values()], jobDemand(resources, driver), job.leftOut);
    for (const name of kept) reserved.add(name);
    if (kept.length > 0) decisions.push({ kind: 'reserve', jobId: job.id, nodes: kept });
    else unreservable.add(ownKey);
  }
  return decisions;
}

/** Specs never change, and each is asked for in every pass that its job waits: ten thousand times the same text. */
const demandKeys = new WeakMap<JobSpec, string>();

/** Equal for jobs that the same nodes would do for, were it not for those that they failed on. */
function demandKeyOf(spec: JobSpec): string {
  let key = demandKeys.get(spec);
  if (key === undefined) {
    key = JSON.stringify([spec.image === null ? 'process' : 'docker', spec.resources]);
    demandKeys.set(spec, key);
  }
  return key;
}

/** The same for jobs that failed on the same nodes, too: a reason names them and what happened there. */
function ownKeyOf({ spec, leftOut }: QueuedJob, waitedLong: boolean): string {
  const key = demandKeyOf(spec);
  if (leftOut.size === 0) return key;
  const failures = [...leftOut].map(([node, cause]) => `${node} ${cause}`);
  return `${key} ${waitedLong} ${failures.sort().join()}`;
}

/** Backoff and dependencies: reasons that more capacity would not change. */
function reasonBeforeResources(job: QueuedJob, nowMs: number): PendingReason | null {
  if (job.dependencies.kind === 'failed') {
    return {
      kind: 'dependency_failed',
      message: `${job.dependencies.job}, which it comes after, did not succeed`,
      remedy: 'stop this job, or submit it again without that dependency',
    };
  }
  if (job.dependencies.kind === 'waiting') {
    return { kind: 'dependency', message: `it comes after ${job.dependencies.on}`, remedy: null };
  }
  if (job.notBeforeMs > nowMs) {
    return { kind: 'backoff', message: 'it waits before its next attempt', remedy: null };
  }
  return null;
}

function without(node: NodeView, task: PlannedTask): NodeView {
  const taken = new Set(task.gpuUuids);
  return {
    ...node,
    freeGpus: node.freeGpus.filter((gpu) => !taken.has(gpu.uuid)),
    freeCpus: node.freeCpus - task.cpus,
    freeMemoryMb: node.freeMemoryMb - task.memoryMb,
  };
}
