/**
 * Ends a torchrun whose worker has failed. By itself it would stay for up to five minutes after that, waiting at its exit
 * barrier for the torchruns of the other nodes (torch/distributed/elastic/agent/server/api.py), whose workers may hang
 * in a collective with the one that is gone; and until it ends, nobody knows.
 */

import { readSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { JobSpec } from '@muster/common/spec/types';
import { workerExitLine } from '@muster/diagnosis/failure/launchers';
import type { Assignment } from '../taskFacts/assignment.ts';
import { readTaskFile } from '../taskFacts/taskFile.ts';

export interface TorchrunWatchParts {
  /** Tasks that run on this node. */
  readonly running: () => readonly { readonly task: TaskRef; readonly assignment: Assignment | null }[];
  readonly outputPathOf: (task: TaskRef) => string;
  /** Signal, grace, kill; resolves when nothing of it is left. */
  readonly end: (task: TaskRef) => Promise<void>;
  readonly log: Logger;
}

/** Of one look at one task: what a flood of output writes in between is not looked at, and its end is seen otherwise. */
const bytesPerLookMax = 256 * 1024;
/** The line may have been half written at the look before. */
const overlapBytes = 512;

interface Watched {
  /** Of its output, in bytes: where to look from. null: it is none of ours, or has been ended. */
  position: number | null;
}

export class TorchrunWatch {
  private readonly parts: TorchrunWatchParts;
  private readonly watched = new Map<TaskKey, Watched>();

  constructor(parts: TorchrunWatchParts) {
    this.parts = parts;
  }

  /** To be called some times a second. */
  look(): void {
    const running = this.parts.running();
    const keys = new Set(running.map(({ task }) => taskKey(task)));
    for (const key of this.watched.keys()) if (!keys.has(key)) this.watched.delete(key);
    for (const { task, assignment } of running) {
      const key = taskKey(task);
      let watched = this.watched.get(key);
      if (watched === undefined) {
        watched = { position: assignment !== null && isWaitedFor(assignment) ? 0 : null };
        this.watched.set(key, watched);
      }
      if (watched.position !== null) this.lookAt(task, watched, watched.position);
    }
  }

  private lookAt(task: TaskRef, watched: Watched, position: number): void {
    const unread = readFrom(this.parts.outputPathOf(task), position);
    if (unread === null) return;
    watched.position = unread.end;
    if (!workerExitLine.test(unread.text)) return;
    watched.position = null;
    const fields = { task: taskKey(task) };
    this.parts.log.info(
      fields,
      'a worker of torchrun has failed: its task is ended, so that the gang need not wait',
    );
    this.parts.end(task).catch((error: unknown) => {
      this.parts.log.warn(
        { ...fields, error: messageOf(error) },
        'it could not be ended; torchrun will do so',
      );
    });
  }
}

/**
 * A command that is torchrun and nothing else: a script around it may well start it again. And one that restarts its
 * workers by itself has not ended with the first of them.
 */
function isWaitedFor({ nodeCount, spec }: Assignment): boolean {
  if (nodeCount < 2) return false;
  return isTorchrun(spec) && !restartsItself(spec);
}

function restartsItself({ command, args, env }: JobSpec): boolean {
  const given = env['PET_MAX_RESTARTS'];
  if (given !== undefined && given !== '0') return true;
  return [...command, ...args].some((word) => /--max[-_]restarts/.test(word));
}

/** null: there is no such file, or nothing new in it. */
function readFrom(path: string, position: number): { text: string; end: number } | null {
  try {
    return readTaskFile(path, (file, { size }) => {
      if (size === position) return null;
      const from = Math.max(0, Math.min(position, size) - overlapBytes, size - bytesPerLookMax);
      const buffer = Buffer.allocUnsafe(size - from);
      const read = readSync(file, buffer, 0, buffer.length, from);
      return { text: buffer.toString('latin1', 0, read), end: from + read };
    });
  } catch {
    return null;
  }
}

const torchrunScript =
  /^\s*(?:exec\s+)?(?:(?:\S*\/)?torchrun|(?:\S*\/)?python[\d.]*\s+-m\s+torch\.distributed\.run)(?:\s[^;|&\n]*)?$/;

/** The command is torchrun and nothing else: a script around it may do whatever it likes when that has ended. */
export function isTorchrun({ launcher, command, args }: JobSpec): boolean {
  if (launcher !== 'torchrun') return false;
  const [program = '', flag, script] = [...command, ...args];
  const text = program === '/bin/sh' && flag === '-c' ? script : [...command, ...args].slice(0, 3).join(' ');
  return torchrunScript.test(text ?? '');
}
