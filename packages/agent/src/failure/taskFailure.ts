/** What a node can tell of the first thing that went wrong in one of its tasks, from the best source there is. */
import { readSync } from 'node:fs';
import { join } from 'node:path';
import type { TaskFailure } from '@muster/common/gangs';
import { findingInMessage } from '@muster/diagnosis/failure/failureReader';
import { type Finding, isStronger } from '@muster/diagnosis/failure/finding';
import type { TaskExit } from '../drivers/driver.ts';
import { readTaskFile } from '../taskFile.ts';
import { parseErrorFile } from './errorFile.ts';
import { findingInOutput } from './outputFindings.ts';

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
 * @returns null for an end that was good. Reads the last part of the output and the error file; what cannot be read tells
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

  const said = findingInOutput(outputPath, exit);
  const file = readWhole(join(directory, errorFileName), errorFileBytesMax);
  const recorded = file === null ? null : parseErrorFile(file.text);
  if (file !== null && recorded !== null) {
    const noted = findingInMessage(recorded.message);
    if (said === null || !saysMore(said, noted)) {
      const isTheSame = said?.evidence.text.includes(noted.evidence.text) ?? false;
      const isOfAnother = said?.consequence === true && !isTheSame;
      return {
        ...causeOf(noted),
        source: 'error_file',
        rank: isOfAnother ? null : (said?.evidence.rank ?? null),
        message: recorded.message,
        line: isTheSame ? (said?.evidence.line ?? null) : null,
        // The file's own time stamp has whole seconds; that of the file system tells which node was first.
        atBoottimeMs: toBoottime(file.modifiedAtMs),
      };
    }
  }
  if (said !== null) {
    const { rank, line } = said.evidence;
    return { ...causeOf(said), source: 'log', rank, line, message: said.message, atBoottimeMs: endedAtMs };
  }
  return {
    source: 'exit',
    consequence: stopping,
    rank: null,
    message: exitText(exit),
    kind: exit.oomKilled ? 'host_oom' : null,
    blame: exit.oomKilled ? 'job' : null,
    line: null,
    atBoottimeMs: endedAtMs,
  };
}

/**
 * The error file has the words of the worker that failed first, which is mostly all there is to know. Not so where these
 * words only follow from another end: a torchrun that is told to stop once its worker has failed records only that.
 */
function saysMore(said: Finding, noted: Finding): boolean {
  if (noted.kind === 'stopped_by_signal') return true;
  return (noted.consequence && !said.consequence) || isStronger(said, noted);
}

/** That it ended with some code or signal is known from the exit. */
function causeOf({ kind, blame, consequence }: Finding): Pick<TaskFailure, 'kind' | 'blame' | 'consequence'> {
  const isTold = kind !== 'exit_code' && kind !== 'unknown';
  return { kind: isTold ? kind : null, blame: isTold ? blame : null, consequence };
}

function exitText({ exitCode, signal, statusLost, oomKilled }: TaskExit): string {
  if (oomKilled) return 'killed by the kernel for want of memory';
  if (signal !== null) return `ended by ${signal}`;
  if (statusLost || exitCode === null) return 'gone, and nobody saw how it ended';
  return `exit code ${exitCode}`;
}

/** A regular file, as far as that many bytes. null: it is not there, or not to be read. */
function readWhole(path: string, bytesMax: number): { text: string; modifiedAtMs: number } | null {
  try {
    return readTaskFile(path, (file, { size, mtimeMs }) => {
      const buffer = Buffer.alloc(Math.min(size, bytesMax));
      const read = readSync(file, buffer, 0, buffer.length, 0);
      return { text: buffer.toString('utf8', 0, read), modifiedAtMs: mtimeMs };
    });
  } catch {
    return null;
  }
}
