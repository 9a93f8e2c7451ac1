/** What a node should do about one task, from the job's state alone: the whole of the agents' protocol in a function. */
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { TaskStateKind } from '@muster/common/states';
import { currentAttempt, isReleased, type Job, type Task } from '../model.ts';

export type Desired =
  /** Prepare it and claim. */
  | { readonly kind: 'assign' }
  | { readonly kind: 'release'; readonly addr: string; readonly port: number }
  | { readonly kind: 'stop'; readonly graceMs: number; readonly signal: string }
  /** Its end is recorded, or it was never released: drop it. */
  | { readonly kind: 'forget' };

/** The task of that name, if it is of the job's current attempt and this node's: nobody has a say in another's (G6). */
export function heldTask(job: Job | undefined, ref: TaskRef, node: NodeName): Task | undefined {
  const attempt = currentAttempt(job);
  const task = attempt?.number === ref.attempt ? attempt.tasks[ref.nodeRank] : undefined;
  return task?.node === node ? task : undefined;
}

/** @param job as it is now; undefined: it has ended, or never was */
export function desiredOf(job: Job | undefined, ref: TaskRef, node: NodeName): Desired {
  const attempt = currentAttempt(job);
  const task = heldTask(job, ref, node);
  if (job === undefined || attempt === null || task === undefined || task.state === 'ended')
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
