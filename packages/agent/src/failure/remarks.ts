/** What only the node of a bare task can add to the words of its failure: which Python ran, and which file was meant. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { appendRemark } from '@muster/common/causeText';
import type { TaskFailure } from '@muster/common/gangs';
import { nearestFile } from '../guard/nearest.ts';

/** What the task was started with. */
export interface BareTask {
  readonly command: readonly string[];
  /** Its PATH; undefined: it has none. */
  readonly path: string | undefined;
  /** Absolute. */
  readonly workdir: string;
}

/** As the coordinator takes it. */
const messageLengthMax = 500;

/** The failure with what this node can add to its message, which has at most 500 characters then. */
export function withRemark(failure: TaskFailure, task: BareTask): TaskFailure {
  const remark = remarkOn(failure, task);
  return remark === null
    ? failure
    : { ...failure, message: appendRemark(failure.message, remark, messageLengthMax) };
}

function remarkOn({ kind, message }: TaskFailure, task: BareTask): string | null {
  if (kind === 'import_error') {
    const python = pythonOf(task);
    return python === null ? null : `interpreter ${python}`;
  }
  const script = /can't open file '([^']+)'/.exec(message)?.[1];
  const near = script === undefined ? null : nearestFile(resolve(task.workdir, script));
  return near === null ? null : `did you mean ${basename(near)}?`;
}

const isPython = /^python[\d.]*$/;

/**
 * The interpreter of `python train.py`, of a script such as torchrun, and of either as the first word of a shell's command.
 * @returns null: something else was started, or it no longer exists
 */
function pythonOf({ command, path, workdir }: BareTask): string | null {
  const [first = '', flag, text = ''] = command;
  const word =
    flag === '-c' && first.endsWith('sh') ? (/^\s*(?:exec\s+)?(\S+)/.exec(text)?.[1] ?? '') : first;
  const program = find(word, path, workdir);
  if (program === null || isPython.test(basename(program))) return program;
  const [interpreter = '', named = ''] = firstLineOf(program);
  if (basename(interpreter) === 'env') return isPython.test(named) ? find(named, path, workdir) : null;
  return isPython.test(basename(interpreter)) ? interpreter : null;
}

function find(word: string, path: string | undefined, workdir: string): string | null {
  const candidates = word.includes('/')
    ? [resolve(workdir, word)]
    : (path ?? '').split(':').map((folder) => resolve(workdir, folder, word));
  return candidates.find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** What the kernel reads of a script's first line. */
const firstLineBytes = 256;

/** The words behind `#!`; empty for what is no script. */
function firstLineOf(path: string): readonly string[] {
  try {
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(firstLineBytes);
      const text = buffer.toString('utf8', 0, readSync(file, buffer, 0, firstLineBytes, 0));
      return /^#![ \t]*([^\n]+)/.exec(text)?.[1]?.split(/[ \t]+/) ?? [];
    } finally {
      closeSync(file);
    }
  } catch {
    return [];
  }
}
