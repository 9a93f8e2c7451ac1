/** Scripts of other schedulers, whose header Muster does not read. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Context } from '../context.ts';
import { type CliError, usageError } from '../errors.ts';
import { shellText } from '../output/text.ts';

/** Such headers stand at the beginning. */
const headBytes = 8_192;
const shells: ReadonlySet<string> = new Set(['sh', 'bash', 'zsh']);
const directive = /^#SBATCH\s+(.*)$/gm;

/** The refusal of `submit -f train.sh`, which sbatch users type. */
export function scriptAsJobFile(file: string, text: string, { environment }: Context): CliError {
  const path = file === '-' ? './SCRIPT' : file.includes('/') ? file : `./${file}`;
  const what = file === '-' ? 'standard input' : file;
  const unread = unreadText(text);
  return usageError(
    `${what} is a script, not a job file`,
    `Try: ${environment.programName} submit -- ${shellText([path])}`,
    ...(unread === null ? [] : [unread]),
  );
}

/**
 * A line for a command that is a script with a header for Slurm: without it the job would silently run without the GPUs and
 * the time limit that its author wrote there.
 * @param command empty: none was given
 * @returns no line for anything else, and for what cannot be read here
 */
export function unreadDirectives(command: readonly string[], workingDir: string): readonly string[] {
  const [program = '', first = ''] = command;
  const path = shells.has(program) ? first : program;
  if (path === '' || path.startsWith('-')) return [];
  const head = headOf(resolve(workingDir, path));
  const unread = head?.startsWith('#!') === true ? unreadText(head) : null;
  return unread === null ? [] : [`${path}: ${unread}`];
}

function unreadText(text: string): string | null {
  const found = [...text.matchAll(directive)].map(([, options = '']) => options.trim());
  if (found.length === 0) return null;
  return `#SBATCH lines are not read (${found.join(' ')}); give these settings as flags, see docs/slurm.md`;
}

function headOf(path: string): string | null {
  let descriptor: number | null = null;
  try {
    // Opening a pipe without a writer would wait for one.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!fstatSync(descriptor).isFile()) return null;
    const buffer = Buffer.alloc(headBytes);
    return buffer.toString('utf8', 0, readSync(descriptor, buffer, 0, headBytes, 0));
  } catch {
    // No such file here: the program is found in PATH, or nowhere.
    return null;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
