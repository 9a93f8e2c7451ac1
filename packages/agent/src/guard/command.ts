import { closedNodeFlags } from '@muster/common/nodeFlags';

/**
 * How a guard is started. It stands beside the tasks for as long as they run, so its memory is bounded where it grew. V8's compilers
 * stay on: after 1,000 short tasks a guard has 20 MiB of its own with them and 14 without, and takes 0.8 instead of 1.3 ms of its
 * own CPU time for a task. Where no tasks start, nothing is compiled. The bound of the old generation is far above what a guard
 * needs, for a runaway guard to fail early.
 */
const nodeFlags = [...closedNodeFlags, '--max-semi-space-size=1', '--max-old-space-size=64'];

/** @param script absolute path of the guard's bundle, or of `main.ts` */
export function guardCommand(nodePath: string, script: string): string[] {
  return [nodePath, ...nodeFlags, script];
}
