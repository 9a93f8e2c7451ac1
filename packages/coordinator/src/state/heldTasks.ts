/** Which tasks a node holds, by the state of the jobs. */
import type { NodeName, TaskRef } from '@muster/common/ids';
import { type Attempt, currentAttempt, type Job, type Task } from '../model.ts';

export interface HeldTask {
  readonly job: Job;
  readonly attempt: Attempt;
  readonly task: Task;
}

/** Tasks that have not ended, by node. One look at every job, so that a list of nodes does not take one per node. */
export function heldTasks(jobs: Iterable<Job>): ReadonlyMap<NodeName, readonly HeldTask[]> {
  const held = new Map<NodeName, HeldTask[]>();
  for (const job of jobs) {
    const attempt = currentAttempt(job);
    if (attempt === null) continue;
    for (const task of attempt.tasks) {
      if (task.state === 'ended') continue;
      const others = held.get(task.node);
      if (others === undefined) held.set(task.node, [{ job, attempt, task }]);
      else others.push({ job, attempt, task });
    }
  }
  return held;
}

/**
 * The task of that name, if the job's current attempt has it on this node. A node has no influence on tasks of other nodes
 * or of earlier attempts (guarantee G6).
 */
export function heldTask(job: Job | undefined, ref: TaskRef, node: NodeName): Task | undefined {
  const attempt = currentAttempt(job);
  const task = attempt?.number === ref.attempt ? attempt.tasks[ref.nodeRank] : undefined;
  return task?.node === node ? task : undefined;
}
