/** Whether the program of a task exists, looked up as the kernel and `execvp` will, and the message for when it does not. */
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { DriverError } from '../taskFacts/errors.ts';
import { asShellCommand, nearestFile, nearestProgram, startOf } from './nearest.ts';
import type { GuardLaunch } from './protocol.ts';
import type { TaskStart } from './taskStart.ts';

/**
 * Reports beforehand what a start would report. A start may still find more: the kernel decides.
 * @throws {DriverError} `command_not_found`, or `exit_code` for what may not be executed
 */
export function requireRunnable(launch: TaskStart): void {
  requireWorkdir(launch);
  const command = launch.command[0] ?? '';
  const paths = candidates(command, launch);
  const program = paths.find(isExecutableFile);
  if (program === undefined) {
    if (paths.some((path) => existsSync(path)))
      throw new DriverError('exit_code', notExecutableMessage(command));
    throw new DriverError('command_not_found', notFoundMessage(command, launch));
  }
  const interpreter = interpreterOf(program);
  if (interpreter !== null && !existsSync(resolve(launch.workdir, interpreter))) {
    throw new DriverError('command_not_found', missingInterpreterMessage(program));
  }
}

/** Checked beforehand, because to the caller of exec a missing directory looks like a missing command. */
export function requireWorkdir({ workdir, as }: Pick<TaskStart, 'workdir' | 'as'>): void {
  try {
    if (!statSync(workdir).isDirectory()) {
      throw new DriverError('command_not_found', `the working directory ${workdir} is not a directory`);
    }
    // Looks into it, which `access` would do as the real user, no matter who this thread acts as.
    statSync(`${workdir}/.`);
  } catch (error) {
    if (error instanceof DriverError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES') {
      throw new DriverError(
        'exit_code',
        `the working directory ${workdir} may not be entered by ${as?.name ?? "this node's agent"}: choose another one with --workdir`,
      );
    }
    throw new DriverError(
      'command_not_found',
      `the working directory ${workdir} does not exist on this node: create it there, or choose another one`,
    );
  }
}

/** What glibc's execvp searches when the environment has no PATH. */
const defaultPath = '/bin:/usr/bin';

function candidates(command: string, { env, workdir }: GuardLaunch): string[] {
  if (command.includes('/')) return [resolve(workdir, command)];
  return foldersOf({ env, workdir }).map((folder) => resolve(folder, command));
}

/** An empty folder of PATH is the working directory. */
function foldersOf({ env, workdir }: Pick<GuardLaunch, 'env' | 'workdir'>): string[] {
  return (env['PATH'] ?? defaultPath).split(':').map((folder) => resolve(workdir, folder));
}

function isExecutableFile(path: string): boolean {
  try {
    // Most folders of PATH do not have it, and an exception for each would cost more than the look.
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() !== true) return false;
    // Root may execute what anybody may. Whether the account of the task may, the kernel decides at the start.
    if (process.geteuid?.() === 0) return (stat.mode & 0o111) !== 0;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What the kernel reads of a script's first line. */
const firstLineBytes = 256;

/** null: it is no script, or may be executed and not read. */
function interpreterOf(program: string): string | null {
  let file: number | null = null;
  try {
    file = openSync(program, 'r');
    const buffer = Buffer.alloc(firstLineBytes);
    const bytes = readSync(file, buffer, 0, firstLineBytes, 0);
    return /^#![ \t]*([^ \t\n]+)/.exec(buffer.toString('utf8', 0, bytes))?.[1] ?? null;
  } catch {
    return null;
  } finally {
    if (file !== null) closeSync(file);
  }
}

export function notExecutableMessage(command: string): string {
  return `${command} may not be executed on this node: make it executable (chmod +x), or name its interpreter first`;
}

/** Names what was probably meant; PATH itself is long, and does not help a user who mistyped a name. */
export function notFoundMessage(command: string, launch: GuardLaunch): string {
  const shell = asShellCommand(launch.command);
  if (shell !== null)
    return `there is no program named "${command}" on this node; a shell reads it as ${shell}`;
  const path = resolve(launch.workdir, command);
  if (command.includes('/')) {
    if (existsSync(path)) return missingInterpreterMessage(path);
    const near = nearestFile(path);
    const remedy = near === null ? 'copy it there, or correct the path' : `did you mean ${near}?`;
    return `${path} does not exist on this node: ${remedy}`;
  }
  const file = existsSync(path) ? path : nearestFile(path);
  const program = file === null ? nearestProgram(command, foldersOf(launch)) : null;
  const meant = file === null ? program : `${startOf(file)} in ${launch.workdir}`;
  const remedy =
    meant === null
      ? "install it there, give its full path, or set PATH in the job's env, which is the agent's otherwise"
      : `did you mean ${meant}?`;
  return `${command} was not found in PATH on this node: ${remedy}`;
}

function missingInterpreterMessage(path: string): string {
  return `${path} exists on this node, but the interpreter that its first line names does not: install it there`;
}
