/** Which task a message is about. */
import type { TaskRef__Output, TaskRef as WireTaskRef } from '../gen/muster/v1/TaskRef.ts';
import { isJobId, type TaskRef } from '../ids.ts';

/** @returns null when the reference is missing or malformed; the message is then ignored. */
export function taskRefFromWire(wire: TaskRef__Output | null): TaskRef | null {
  if (wire === null || !isJobId(wire.jobId) || wire.attempt < 1) return null;
  return { jobId: wire.jobId, attempt: wire.attempt, nodeRank: wire.nodeRank };
}

export function taskRefToWire(task: TaskRef): WireTaskRef {
  return { jobId: task.jobId, attempt: task.attempt, nodeRank: task.nodeRank };
}

export const taskRef = { toWire: taskRefToWire, fromWire: taskRefFromWire };
