/** Asks the reader of machine facts, a process of its own behind everything else. */
import { join } from 'node:path';
import type { MachineFacts } from '@muster/common/hardware';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import { isMapping } from '@muster/common/spec/path';
import { Program } from '../program.ts';

/** The build puts it beside the bundle. */
const machineReaderProgram: string = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, 'main.ts')
  : join(import.meta.dirname, 'machine-reader.mjs');

/** The programs that it starts ask disks and firmware, which may take their time. */
const usualDeadlineMs = 60_000;
const outputBytesMax = 256 * 1024;
const lowestPriority = 19;

export interface MachineReaderOptions {
  readonly nodePath: string;
  readonly searchPath: string;
  readonly program?: string;
  readonly deadlineMs?: number;
}

/**
 * @param abort ends the process, with all that it started
 * @returns the facts; nothing else of the agent's environment than where to look for programs goes to the reader
 * @throws {Error} when it fails, says something else, or takes too long
 */
export async function readMachineFacts(
  abort: AbortSignal,
  options: MachineReaderOptions,
): Promise<MachineFacts> {
  const { nodePath, searchPath, program = machineReaderProgram, deadlineMs = usualDeadlineMs } = options;
  const environment = { PATH: searchPath };
  const reader = new Program({
    path: nodePath,
    environment,
    cwd: '/',
    niceness: lowestPriority,
    outputBytesMax,
  });
  const onAbort = () => void reader.close();
  if (abort.aborted) onAbort();
  abort.addEventListener('abort', onAbort, { once: true });
  const outcome = await reader.run([...closedNodeFlags, '--max-old-space-size=256', program], deadlineMs);
  abort.removeEventListener('abort', onAbort);
  if (abort.aborted) throw new Error('it was aborted with the agent');
  switch (outcome.kind) {
    case 'exited': {
      const facts = outcome.status === 0 ? parse(outcome.stdout) : null;
      if (facts !== null) return facts;
      const ended = `it ended ${outcome.status === null ? 'by a signal' : `with exit code ${outcome.status}`}`;
      throw new Error(outcome.status === 0 ? 'it printed something else' : ended);
    }
    case 'hung':
    case 'stuck':
      throw new Error(`it took more than ${deadlineMs} ms`);
    case 'too_long':
      throw new Error(`it printed more than ${outputBytesMax} bytes`);
    case 'not_started':
      throw new Error(outcome.reason);
    default: {
      const never: never = outcome;
      return never;
    }
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
