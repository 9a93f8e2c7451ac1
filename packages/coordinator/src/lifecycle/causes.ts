/** From how a task ended to the cause its attempt carries. Log signatures and GPU faults will refine this. */
import type { Cause, TaskEnd } from '@muster/common/views';
import type { Task } from '../model.ts';

/** The end of a task that was never released: nothing ran, nothing is left. */
export const neverStartedEnd: TaskEnd = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: false,
  startError: null,
  logBytes: 0,
  gpuUsage: null,
};

export function endedWell(exit: TaskEnd): boolean {
  return exit.exitCode === 0 && exit.startError === null;
}

/** Nothing of the user's program ran. */
export function neverStarted(exit: TaskEnd): boolean {
  return exit.startError !== null && exit.exitCode === null && exit.signal === null && !exit.statusLost;
}

/** @param task a task that has ended badly */
export function causeOfEnd(task: Task): Cause {
  const { exit, node, nodeRank } = task;
  const where = `rank ${nodeRank} on ${node}`;
  if (exit === null) return { kind: 'unknown', message: `${where} ended`, nodeRank, node };
  if (exit.startError !== null) return { ...exit.startError, nodeRank, node };
  if (exit.oomKilled) {
    return {
      kind: 'host_oom',
      message: `${where} was killed by the kernel for want of memory`,
      nodeRank,
      node,
    };
  }
  if (exit.statusLost) {
    return { kind: 'unknown', message: `${where} is gone and nobody saw how it ended`, nodeRank, node };
  }
  if (exit.signal !== null) {
    return { kind: 'exit_code', message: `${where} was ended by ${exit.signal}`, nodeRank, node };
  }
  return { kind: 'exit_code', message: `${where} exited with code ${exit.exitCode}`, nodeRank, node };
}
