/** Asks the reader of machine facts, a process of its own behind everything else. */
import { execFile } from 'node:child_process';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { MachineFacts } from '@muster/common/hardware';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import { isMapping } from '@muster/common/spec/path';

/** The build puts it beside the bundle. */
export const machineReaderProgram: string = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, 'main.ts')
  : join(import.meta.dirname, 'machine-reader.mjs');

/** The programs that it starts ask disks and firmware, which may take their time. */
const deadlineMs = 60_000;
const outputBytesMax = 256 * 1024;
const lowestPriority = 19;

/**
 * @param abort ends the process
 * @returns the facts; nothing else of the agent's environment than where to look for programs goes to the reader
 * @throws {Error} when it fails, says something else, or takes too long
 */
export function readMachineFacts(
  abort: AbortSignal,
  {
    nodePath,
    searchPath,
    program = machineReaderProgram,
  }: { readonly nodePath: string; readonly searchPath: string; readonly program?: string },
): Promise<MachineFacts> {
  return new Promise((resolve, reject) => {
    const options = {
      cwd: '/',
      env: { PATH: searchPath, LC_ALL: 'C' },
      timeout: deadlineMs,
      killSignal: 'SIGKILL',
      maxBuffer: outputBytesMax,
      signal: abort,
    } as const;
    const args = [...closedNodeFlags, '--max-old-space-size=256', program];
    const child = execFile(nodePath, args, options, (error, stdout) => {
      const facts = error === null ? parse(stdout) : null;
      if (facts !== null) resolve(facts);
      else reject(new Error(error === null ? 'it printed something else' : messageOf(error)));
    });
    try {
      if (child.pid !== undefined) setPriority(child.pid, lowestPriority);
    } catch {
      // It has ended already.
    }
  });
}

function parse(text: string): MachineFacts | null {
  try {
    const facts: unknown = JSON.parse(text);
    const isWhole =
      isMapping(facts) && Array.isArray(facts['disks']) && Array.isArray(facts['memoryModules']);
    // Our own program has printed it.
    return isWhole ? (facts as unknown as MachineFacts) : null;
  } catch {
    return null;
  }
}
