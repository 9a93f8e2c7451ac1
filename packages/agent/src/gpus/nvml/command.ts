import { closedNodeFlags } from '@muster/common/nodeFlags';

/**
 * How the reader is started: it has little to do and stands beside the agent all the time. Without the optimising
 * compilers it has 53 MB resident instead of 63 (18 instead of 23 where the node binary is shared with the agent), and a
 * sample costs less, because nothing runs often enough to pay for being optimised. The bound of the old generation is far
 * above its needs.
 */
const nodeFlags = [
  ...closedNodeFlags,
  '--sparkplug',
  '--no-opt',
  '--no-maglev',
  '--max-semi-space-size=1',
  '--max-old-space-size=64',
];

/** @param script absolute path of the reader's bundle, or of `main.ts` */
export function nvmlReaderCommand(nodePath: string, script: string): string[] {
  return [nodePath, ...nodeFlags, script];
}
