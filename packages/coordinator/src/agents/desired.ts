/** What a node should do about one task, from the job's state alone: the whole of the agents' protocol in a function. */
import type { PathCheck } from '@muster/common/gangs';
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { TaskStateKind } from '@muster/common/states';
import { pathCheckOf } from '../lifecycle/network.ts';
import { type Attempt, currentAttempt, isReleased, type Job, type Task } from '../model.ts';
import { heldTask } from '../state/heldTasks.ts';

export type Desired =
  /** Get ready all that it needs, and report that. */
  | { readonly kind: 'prepare' }
  /** Try the paths to the others of its gang. */
  | { readonly kind: 'check'; readonly check: PathCheck }
  | {
      readonly kind: 'start';
      readonly addr: string;
      readonly port: number;
      /** Of every node of the gang, by node rank. */
      readonly addresses: readonly string[];
    }
  | { readonly kind: 'stop'; readonly graceMs: number; readonly signal: string }
  /** Its end is recorded, or it was never released: drop it. */
  | { readonly kind: 'forget' };

/** @param job as it is now; undefined: it has ended, or never was */
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

/** Once a checkpoint that was begun after the signal is safe, nobody has to wait for the rest of the grace. */
function stopOf({ spec }: Job, { savedAfterStop }: Attempt): Desired {
  return { kind: 'stop', graceMs: savedAfterStop ? 0 : spec.stopGraceMs, signal: spec.stopSignal };
}

/** Equal for what needs not be said twice: a check of other addresses is another one, and so is a stop of less grace. */
export function wordOf(desired: Desired): string {
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
 * Does an agent's account of a task show that it has heard what we want?
 * @param recorded the task as we have it
 * @param observed state of the task as its agent sees it; undefined: the agent does not know it
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
