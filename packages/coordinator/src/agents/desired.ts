/** What a node should do about one task, computed from the state of the job alone. */
import type { PathCheck } from '@muster/common/gangs';
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { TaskStateKind } from '@muster/common/states';
import { pathCheckOf } from '../lifecycle/network.ts';
import { type Attempt, currentAttempt, isReleased, type Job, type Task } from '../model.ts';
import { heldTask } from '../state/heldTasks.ts';

export type Desired =
  /** Make ready what the task needs, and report that. */
  | { readonly kind: 'prepare' }
  /** Test the paths to the other nodes of the gang. */
  | { readonly kind: 'check'; readonly check: PathCheck }
  | {
      readonly kind: 'start';
      readonly addr: string;
      readonly port: number;
      /** The address of every node of the gang, by node rank. */
      readonly addresses: readonly string[];
    }
  | { readonly kind: 'stop'; readonly graceMs: number; readonly signal: string }
  /** Drop the task: its end is recorded, or it was never released. */
  | { readonly kind: 'forget' };

/** @param job as it is now; undefined: it has ended, or never existed */
export function desiredOf(job: Job | undefined, ref: TaskRef, node: NodeName): Desired {
  const attempt = currentAttempt(job);
  const task = heldTask(job, ref, node);
  if (job === undefined || attempt === null || task === undefined || task.state === 'ended')
    return { kind: 'forget' };
  if (!isReleased(attempt)) {
    const { network } = attempt;
    if (network === null) return { kind: 'prepare' };
    return { kind: 'check', check: pathCheckOf(attempt, network, task.nodeRank) };
  }
  if (job.state.kind === 'stopping') return stopOf(job, attempt);
  const { addr, port } = attempt.master ?? { addr: '127.0.0.1', port: 0 };
  return { kind: 'start', addr, port, addresses: attempt.network?.addresses ?? [addr] };
}

/** A stop. Its grace is 0 once a checkpoint that was begun after the signal is verified: nothing needs the rest of it. */
function stopOf({ spec }: Job, { savedAfterStop }: Attempt): Desired {
  return { kind: 'stop', graceMs: savedAfterStop ? 0 : spec.stopGraceMs, signal: spec.stopSignal };
}

/** Whether two orders are the same, and the second need not be sent. Other addresses, or a shorter grace, make another order. */
export function orderKey(desired: Desired): string {
  switch (desired.kind) {
    case 'check':
      return `check ${desired.check.round}`;
    case 'stop':
      return `stop ${desired.graceMs}`;
    default:
      return desired.kind;
  }
}

/**
 * Whether the report of an agent about a task shows that it has received the order.
 * @param recorded the task as it is stored
 * @param observed the state of the task that its agent reports; undefined: the agent does not have the task
 */
export function isHeard(desired: Desired, recorded: Task, observed: TaskStateKind | undefined): boolean {
  switch (desired.kind) {
    case 'prepare':
      return recorded.state !== 'assigned';
    case 'check':
      return recorded.paths !== null;
    case 'start':
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
