/** The verdict on a task that an agent reports to have. It is computed from memory, because heartbeats wait for nothing (G4). */
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import type { NodeName, TaskRef } from '@muster/common/ids';
import { taskRefToWire } from '@muster/common/wire/codec';
import type { LeaseGrants } from '../leases/leases.ts';
import { currentAttempt } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import { desiredOf } from './desired.ts';

/** Grants the lease that the verdict contains, so the verdict is sent at once. */
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
  // An attempt newer than the store has: the store is older than the cluster, and its lost tasks must not be killed.
  if (task.attempt > job.lastAttempt) return { task: wire, verdict: 'VERDICT_UNKNOWN' };
  const desired = desiredOf(job, task, node);
  const attempt = currentAttempt(job);
  if (desired.kind === 'forget' || attempt === null) return { task: wire, verdict: 'VERDICT_FORGET' };
  const leaseMs = leases.grant(node, attempt);
  // A task that is being stopped keeps its lease, because it needs the time of its grace to save.
  return { task: wire, verdict: desired.kind === 'stop' ? 'VERDICT_STOP' : 'VERDICT_RUN', leaseMs };
}

/** The verdict on a task that no longer belongs to this cluster: the agent kills it. */
export function forgotten(task: TaskRef): TaskVerdict {
  return { task: taskRefToWire(task), verdict: 'VERDICT_FORGET' };
}
