/** Asks the reader of machine facts, a process of its own behind everything else. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { MachineFacts } from '@muster/common/hardware';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import { isMapping } from '@muster/common/spec/path';

/** The build puts it beside the bundle. */
export const machineReaderProgram: string = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, 'main.ts')
  : join(import.meta.dirname, 'machine-reader.mjs');

/** The programs that it starts ask disks and firmware, which may take their time. */
const usualDeadlineMs = 60_000;
const outputBytesMax = 256 * 1024;
const lowestPriority = 19;

/**
 * @param abort ends the process, with all that it started
 * @returns the facts; nothing else of the agent's environment than where to look for programs goes to the reader
 * @throws {Error} when it fails, says something else, or takes too long
 */
export function readMachineFacts(
  abort: AbortSignal,
  {
    nodePath,
    searchPath,
    program = machineReaderProgram,
    deadlineMs = usualDeadlineMs,
  }: {
    readonly nodePath: string;
    readonly searchPath: string;
    readonly program?: string;
    readonly deadlineMs?: number;
  },
): Promise<MachineFacts> {
  return new Promise((resolve, reject) => {
    const child = spawn(nodePath, [...closedNodeFlags, '--max-old-space-size=256', program], {
      cwd: '/',
      env: { PATH: searchPath, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
      // A group of its own: a program that asks a disk which does not answer has to end with it.
      detached: true,
    });
    const printed: Buffer[] = [];
    const giveUp = (why: string) => {
      killGroup(child);
      child.stdout.destroy();
      end(new Error(why));
    };
    const onAbort = () => giveUp('it was aborted with the agent');
    const deadline = setTimeout(() => giveUp(`it took more than ${deadlineMs} ms`), deadlineMs);
    const end = (outcome: MachineFacts | Error) => {
      clearTimeout(deadline);
      abort.removeEventListener('abort', onAbort);
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    };
    child.stdout.on('data', (piece: Buffer) => {
      printed.push(piece);
      const bytes = printed.reduce((sum, { length }) => sum + length, 0);
      if (bytes > outputBytesMax) giveUp(`it printed more than ${outputBytesMax} bytes`);
    });
    child.once('error', (error) => end(error));
    child.once('close', (status, signal) => {
      const facts = status === 0 ? parse(Buffer.concat(printed).toString('utf8')) : null;
      const ended = signal === null ? `with exit code ${status}` : `by ${signal}`;
      end(facts ?? new Error(status === 0 ? 'it printed something else' : `it ended ${ended}`));
    });
    try {
      if (child.pid !== undefined) setPriority(child.pid, lowestPriority);
    } catch {
      // It has ended already.
    }
    if (abort.aborted) onAbort();
    else abort.addEventListener('abort', onAbort, { once: true });
  });
}

/** While its first process is there its number is that of its group, and nobody else's. */
function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended in this moment.
  }
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
