/** What an agent is answered about a task that it says it has: from memory, because a heartbeat waits for nothing. */
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import type { NodeName, TaskRef } from '@muster/common/ids';
import { taskRefToWire } from '@muster/common/wire/taskRef';
import type { LeaseGrants } from '../leases/leases.ts';
import { currentAttempt } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import { desiredOf } from './desired.ts';

/** Grants the lease that it speaks of: to be sent at once. */
export function verdictOn(
  task: TaskRef,
  node: NodeName,
  state: Pick<ClusterState, 'jobs' | 'outcomes'>,
  leases: LeaseGrants,
): TaskVerdict {
  const wire = taskRefToWire(task);
  const job = state.jobs.get(task.jobId);
  if (job === undefined) {
    const known = state.outcomes.has(task.jobId);
    return { task: wire, verdict: known ? 'VERDICT_FORGET' : 'VERDICT_UNKNOWN' };
  }
  // Newer than all we know of: this store is older than the cluster, and what it has forgotten is not to be killed.
  if (task.attempt > job.lastAttempt) return { task: wire, verdict: 'VERDICT_UNKNOWN' };
  const desired = desiredOf(job, task, node);
  const attempt = currentAttempt(job);
  if (desired.kind === 'forget' || attempt === null) return { task: wire, verdict: 'VERDICT_FORGET' };
  const leaseMs = leases.grant(node, attempt);
  // The grace of a stop takes time too: what is being stopped keeps its lease.
  return { task: wire, verdict: desired.kind === 'stop' ? 'VERDICT_STOP' : 'VERDICT_RUN', leaseMs };
}

/** It is none of this cluster's any more: the agent kills it. */
export function forgotten(task: TaskRef): TaskVerdict {
  return { task: taskRefToWire(task), verdict: 'VERDICT_FORGET' };
}
