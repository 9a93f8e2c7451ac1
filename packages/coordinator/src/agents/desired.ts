/** What a node should do about one task, from the job's state alone: the whole of the agents' protocol in a function. */
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskStateKind } from '@muster/common/states';
import { currentAttempt, isReleased, type Job, type Task } from '../model.ts';

export type Desired =
  /** Prepare it and claim. */
  | { readonly kind: 'assign' }
  | { readonly kind: 'release'; readonly addr: string; readonly port: number }
  | { readonly kind: 'stop'; readonly graceMs: number; readonly signal: string }
  /** Its end is recorded, or it was never released: drop it. */
  | { readonly kind: 'forget' };

export function desiredOf(job: Job, attemptNumber: number, task: Task | undefined): Desired {
  const attempt = currentAttempt(job);
  if (attempt?.number !== attemptNumber || task === undefined || task.state === 'ended')
    return { kind: 'forget' };
  if (!isReleased(attempt)) return { kind: 'assign' };
  if (job.state.kind === 'stopping')
    return { kind: 'stop', graceMs: job.spec.stopGraceMs, signal: 'SIGTERM' };
  const { master } = attempt;
  return { kind: 'release', addr: master?.addr ?? '127.0.0.1', port: master?.port ?? 0 };
}

/**
 * Does an agent's account of a task show that it has heard what we want?
 * @param recorded state of the task as we have it
 * @param observed state of the task as its agent sees it; undefined: the agent does not know it
 */
export function isHeard(
  desired: Desired,
  recorded: TaskStateKind,
  observed: TaskStateKind | undefined,
): boolean {
  switch (desired.kind) {
    case 'assign':
      return recorded !== 'assigned';
    case 'release':
      return observed === 'running' || observed === 'ended';
    case 'stop':
      return observed === 'ended';
    case 'forget':
      return observed === undefined;
    default: {
      const never: never = desired;
      return never;
    }
  }
}

/** The tasks of a job's current attempt, with their names. */
export function* tasksOf(
  job: Job,
): Iterable<{ readonly ref: TaskRef; readonly key: string; readonly task: Task }> {
  const attempt = currentAttempt(job);
  for (const task of attempt?.tasks ?? []) {
    const ref = { jobId: job.id, attempt: job.lastAttempt, nodeRank: task.nodeRank };
    yield { ref, key: taskKey(ref), task };
  }
}
