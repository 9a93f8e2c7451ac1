import { closedNodeFlags } from '@muster/common/nodeFlags';

/**
 * How a guard is started. It stands beside the tasks for as long as they run, so its memory is bounded where it grew:
 * it waits for the kernel most of the time, and compiled code costs more than it saves. After 2,000 tasks it has
 * 58 MB resident instead of 78, of which 16 MB instead of 26 are its own; the rest is the node binary, which the agent
 * has mapped too. The bound of the old generation is far above what it needs, for a runaway guard to fail early.
 *
 * (`--lite-mode` would do the same, but takes WebAssembly away, which node needs to run `.ts` files.)
 */
const nodeFlags = [
  ...closedNodeFlags,
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--max-semi-space-size=1',
  '--max-old-space-size=64',
];

/** @param script absolute path of the guard's bundle, or of `main.ts` */
export function guardCommand(nodePath: string, script: string): string[] {
  return [nodePath, ...nodeFlags, script];
}
