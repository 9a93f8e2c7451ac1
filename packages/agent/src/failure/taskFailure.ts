/** What a node can tell of the first thing that went wrong in one of its tasks, from the best source there is. */
import { readSync } from 'node:fs';
import { join } from 'node:path';
import type { TaskFailure } from '@muster/common/gangs';
import type { TaskExit } from '../drivers/driver.ts';
import { readTaskFile } from '../taskFile.ts';
import { parseErrorFile } from './errorFile.ts';
import { isConsequence, isStopNotice, readOutputFailure, tailBytesMax } from './outputFailure.ts';

/** Name of the error file in a task's directory. */
export const errorFileName = 'torchelastic_error.json';

/** Far above what torchelastic writes, tracebacks included. */
const errorFileBytesMax = 1024 * 1024;

export interface EndOfTask {
  readonly exit: TaskExit;
  /** The task's directory. */
  readonly directory: string;
  readonly outputPath: string;
  /** We had begun to end it. */
  readonly stopping: boolean;
}

export interface NodeClocks {
  readonly wallMs: () => number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
}

/**
 * @returns null for an end that was good. Reads the end of the output and the error file; what cannot be read tells
 *   nothing.
 */
export function readTaskFailure(end: EndOfTask, clocks: NodeClocks): TaskFailure | null {
  const { exit, directory, outputPath, stopping } = end;
  if (exit.exitCode === 0) return null;
  const boottimeNowMs = clocks.boottimeMs();
  const { finishedAtMs, finishedBoottimeMs } = exit;
  // Both clocks at one moment: as close to the failure as can be, for the wall clock may be set at any time.
  const both =
    finishedAtMs === null || finishedBoottimeMs === undefined
      ? { wallMs: clocks.wallMs(), boottimeMs: boottimeNowMs }
      : { wallMs: finishedAtMs, boottimeMs: finishedBoottimeMs };
  // No failure lies in the future, whatever it was set to.
  const toBoottime = (wallMs: number) =>
    Math.max(0, Math.min(boottimeNowMs, both.boottimeMs - (both.wallMs - wallMs)));
  const endedAtMs = finishedAtMs === null ? boottimeNowMs : toBoottime(finishedAtMs);

  const tail = readTail(outputPath, tailBytesMax);
  const said = tail === null ? null : readOutputFailure(tail.text);
  const file = readTail(join(directory, errorFileName), errorFileBytesMax);
  const recorded = file === null ? null : parseErrorFile(file.text);
  // A torchrun that is told to stop once its worker has failed records only that; its output tells of the worker.
  const saysLess = recorded !== null && said !== null && isStopNotice(recorded.message);
  if (file !== null && recorded !== null && !saysLess) {
    return {
      source: 'error_file',
      consequence: isConsequence(recorded.message),
      rank: said?.rank ?? null,
      message: recorded.message,
      // The file's own time stamp has whole seconds; that of the file system tells which node was first.
      atBoottimeMs: toBoottime(file.modifiedAtMs),
    };
  }
  if (said !== null) return { source: 'log', ...said, atBoottimeMs: endedAtMs };
  return {
    source: 'exit',
    consequence: stopping,
    rank: null,
    message: exitText(exit),
    atBoottimeMs: endedAtMs,
  };
}

function exitText({ exitCode, signal, statusLost, oomKilled }: TaskExit): string {
  if (oomKilled) return 'killed by the kernel for want of memory';
  if (signal !== null) return `ended by ${signal}`;
  if (statusLost || exitCode === null) return 'gone, and nobody saw how it ended';
  return `exit code ${exitCode}`;
}

/** The last bytes of a regular file. null: it is not there, or not to be read. */
function readTail(path: string, bytesMax: number): { text: string; modifiedAtMs: number } | null {
  try {
    return readTaskFile(path, (file, { size, mtimeMs }) => {
      const length = Math.min(size, bytesMax);
      const buffer = Buffer.alloc(length);
      const read = readSync(file, buffer, 0, length, size - length);
      return { text: buffer.toString('utf8', 0, read), modifiedAtMs: mtimeMs };
    });
  } catch {
    return null;
  }
}
