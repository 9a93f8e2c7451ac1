/** What a node knows of the first thing that went wrong in one of its tasks, from the best source there is. */
import { readSync } from 'node:fs';
import { join } from 'node:path';
import type { TaskFailure } from '@muster/common/gangs';
import { isMapping } from '@muster/common/spec/path';
import { findingInMessage } from '@muster/diagnosis/failure/failureReader';
import { type FailureFinding, isStronger } from '@muster/diagnosis/failure/finding';
import { ownDirectory } from '../taskFacts/account.ts';
import type { TaskExit } from '../taskFacts/execution.ts';
import { readTaskFile } from '../taskFacts/taskFile.ts';
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

/** Both clocks of the node, read together. */
export interface NodeMoment {
  readonly wallMs: number;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: number;
}

/**
 * Reads the last part of the output and the error file; what cannot be read shows nothing.
 * @param end a bad one
 * @param isSpent whether reading has taken as long as it may
 * @throws {OverBudget}
 */
export function readTaskFailure(end: EndOfTask, now: NodeMoment, isSpent: () => boolean): TaskFailure {
  const { exit, directory, outputPath } = end;
  const toBoottime = boottimeOf(exit, now);
  const logged = findingInOutput(outputPath, exit, isSpent);
  const file =
    readWhole(join(ownDirectory(directory), errorFileName), errorFileBytesMax) ??
    readWhole(join(directory, errorFileName), errorFileBytesMax);
  const recorded = file === null ? null : messageInErrorFile(file.text);
  if (file !== null && recorded !== null) {
    const noted = findingInMessage(recorded);
    if (logged === null || !isBetterEvidence(logged, noted)) {
      const isTheSame = logged?.evidence.text.includes(noted.evidence.text) ?? false;
      const isOfAnother = logged?.consequence === true && !isTheSame;
      return {
        ...causeOf(noted),
        source: 'error_file',
        rank: isOfAnother ? null : (logged?.evidence.rank ?? null),
        message: recorded,
        line: isTheSame ? (logged?.evidence.line ?? null) : null,
        // The file's own time stamp has whole seconds; that of the file system tells which node was first.
        atBoottimeMs: toBoottime(file.modifiedAtMs),
      };
    }
  }
  if (logged !== null) {
    const { rank, line } = logged.evidence;
    const atBoottimeMs = endedAt(exit, now);
    return { ...causeOf(logged), source: 'log', rank, line, message: logged.message, atBoottimeMs };
  }
  return failureOfExit(end, now);
}

/** Of an end whose output could not be read within its budget: nobody knows what it contains. */
export function unreadFailure(end: EndOfTask, now: NodeMoment): TaskFailure {
  const failure = failureOfExit(end, now);
  if (end.exit.oomKilled) return failure;
  const message = 'its output could not be read in time, so the reason is not known';
  return { ...failure, kind: 'unknown', blame: 'unknown', message };
}

function failureOfExit({ exit, stopping }: EndOfTask, now: NodeMoment): TaskFailure {
  return {
    source: 'exit',
    consequence: stopping,
    rank: null,
    message: exitText(exit),
    kind: exit.oomKilled ? 'host_oom' : null,
    blame: exit.oomKilled ? 'job' : null,
    line: null,
    atBoottimeMs: endedAt(exit, now),
  };
}

function endedAt(exit: TaskExit, now: NodeMoment): number {
  return exit.finishedAtMs === null ? now.boottimeMs : boottimeOf(exit, now)(exit.finishedAtMs);
}

/** From the wall clock to the one that nobody sets. */
function boottimeOf(
  { finishedAtMs, finishedBoottimeMs }: TaskExit,
  now: NodeMoment,
): (wallMs: number) => number {
  // Both clocks at one moment: as close to the failure as can be, for the wall clock may be set at any time.
  const both =
    finishedAtMs === null || finishedBoottimeMs === undefined
      ? now
      : { wallMs: finishedAtMs, boottimeMs: finishedBoottimeMs };
  // No failure lies in the future, whatever it was set to.
  return (wallMs) => Math.max(0, Math.min(now.boottimeMs, both.boottimeMs - (both.wallMs - wallMs)));
}

/**
 * The error file has the words of the worker that failed first, which is mostly all there is to know. Not so where these
 * words only follow from another end: a torchrun that is asked to stop once its worker has failed records only that.
 */
function isBetterEvidence(logged: FailureFinding, noted: FailureFinding): boolean {
  if (noted.kind === 'stopped_by_signal') return true;
  return (noted.consequence && !logged.consequence) || isStronger(logged, noted);
}

/** That it ended with some code or signal is known from the exit. */
function causeOf({
  kind,
  blame,
  consequence,
}: FailureFinding): Pick<TaskFailure, 'kind' | 'blame' | 'consequence'> {
  const isSpecific = kind !== 'exit_code' && kind !== 'unknown';
  return { kind: isSpecific ? kind : null, blame: isSpecific ? blame : null, consequence };
}

function exitText({ exitCode, signal, statusLost, oomKilled }: TaskExit): string {
  if (oomKilled) return 'killed by the kernel because memory ran out';
  if (signal !== null) return `ended by ${signal}`;
  if (statusLost || exitCode === null) return 'ended with an unknown exit status';
  return `exit code ${exitCode}`;
}

/** A regular file, as far as that many bytes. null: it is not there, or not to be read. */
function readWhole(path: string, bytesMax: number): { text: string; modifiedAtMs: number } | null {
  try {
    return readTaskFile(path, (file, { size, mtimeMs, nlink }) => {
      // Another name of somebody else's file, which the task could not read itself.
      if (nlink !== 1) return null;
      const buffer = Buffer.alloc(Math.min(size, bytesMax));
      const read = readSync(file, buffer, 0, buffer.length, 0);
      return { text: buffer.toString('utf8', 0, read), modifiedAtMs: mtimeMs };
    });
  } catch {
    return null;
  }
}

/**
 * The error file of torchelastic: torchrun copies that of the worker which failed first to the path in its own
 * TORCHELASTIC_ERROR_FILE, when the program's entry point is decorated with `@record`.
 *
 * Format (torch/distributed/elastic/multiprocessing/errors): `{"message": {"message": "ValueError: …", "extraInfo":
 * {"py_callstack": "…", "timestamp": "1689298411"}}}`, or `message` as text.
 *
 * @returns the message on one line; null: the text is no such file, whole or not
 */
function messageInErrorFile(text: string): string | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const outer = isMapping(value) ? value['message'] : undefined;
  const message = isMapping(outer) ? outer['message'] : outer;
  return typeof message === 'string' && message !== '' ? oneLine(message) : null;
}

const lengthMax = 500;

/** The first line that is not empty, without colours and control characters, cut to what a sentence can hold. */
function oneLine(text: string): string {
  const line = plainText(text)
    .split('\n')
    .map((each) => each.trim())
    .find((each) => each !== '');
  return (line ?? '').slice(0, lengthMax);
}

/** Colours gone, carriage returns as line ends, every other control character as a space. */
function plainText(text: string): string {
  return text
    .replaceAll(ansi, '')
    .replaceAll('\r', '\n')
    .replaceAll(/[^\P{Cc}\n]/gu, ' ');
}

const ansi = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g');
