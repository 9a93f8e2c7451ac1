/**
 * How the reader is started: it has little to do and stands beside the agent all the time. Without optimising compilers
 * and with a small young generation it needs some megabytes less; the bound of the old generation is far above its needs.
 */
const nodeFlags = [
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--max-semi-space-size=1',
  '--max-old-space-size=64',
];

/** @param script absolute path of the reader's bundle, or of `main.ts` */
export function nvmlReaderCommand(nodePath: string, script: string): string[] {
  return [nodePath, ...nodeFlags, script];
}
