/** Why a container could not be started, in messages that name the thing and the remedy. */

import { asShellCommand } from '../../guard/nearest.ts';
import { DriverError } from '../../taskFacts/errors.ts';
import type { TaskName } from '../../taskFacts/execution.ts';
import type { TaskLaunch } from '../driver.ts';
import { containerName } from './containerSpec.ts';
import { EngineError } from './engineHttp.ts';

/** @returns a {@link DriverError}; it carries `error` as its cause */
export function explainStart(error: unknown, launch: TaskLaunch): DriverError {
  if (error instanceof DriverError) return error;
  const { causeKind, message } = explanation(error, launch);
  return new DriverError(causeKind, message, { cause: error });
}

interface Explanation {
  readonly causeKind: string;
  readonly message: string;
}

function explanation(error: unknown, launch: TaskLaunch): Explanation {
  const words = error instanceof Error ? error.message : String(error);
  if (/no space left on device|ENOSPC/.test(words)) {
    const message = `the disk of the node is full: ${words}. Free some space (docker system df shows what the images take)`;
    return { causeKind: 'disk_full', message };
  }
  const unknown = (message: string): Explanation => ({ causeKind: 'unknown', message });
  if (!(error instanceof EngineError))
    return unknown(`cannot prepare the task in ${launch.directory}: ${words}`);
  if (error.status === null) return { causeKind: 'container_engine', message: words };

  const source = /bind source path does not exist: (.*)/.exec(words)?.[1];
  if (source?.startsWith(`${launch.directory}/`) === true) {
    return unknown(
      `the container engine does not see ${launch.directory}, where the agent keeps the task's output: ` +
        'run both on the same machine; an agent in a container needs its data directory mounted at the same path',
    );
  }
  if (source !== undefined) return unknown(missingSourceMessage(source));
  const command = /exec: "([^"]*)":.*(?:not found|no such file)/.exec(words)?.[1];
  if (command !== undefined) return commandNotFound(command, launch, null);
  if (/could not select device driver|nvidia-container|CDI device/i.test(words)) {
    return { causeKind: 'container_engine', message: noGpusMessage(words) };
  }
  if (isEngineTrouble(error.status, words)) {
    return { causeKind: 'container_engine', message: `the container engine cannot start tasks: ${words}` };
  }
  return unknown(`the container engine refuses the task: ${words}`);
}

/** Words of dockerd, containerd and runc when a part of them is away, or the node beneath them fails. */
const troubleWords: readonly RegExp[] = [
  /containerd(?: is not|: |\.sock)|transport is closing|server is shutting down/i,
  /context deadline exceeded|connection refused|resource temporarily unavailable/i,
  /cgroups?: cannot|cannot allocate memory|too many open files/i,
  /read-only file system|input\/output error/i,
];

/** True for a failure of the engine or of the node beneath it, which another node may not have. */
function isEngineTrouble(status: number, words: string): boolean {
  return status === 503 || (status >= 500 && troubleWords.some((each) => each.test(words)));
}

/** The engine maps users, so its containers would run as none of the accounts that the node knows. */
export function mappedUsers(): DriverError {
  return new DriverError(
    'unknown',
    'the container engine maps users (userns-remap, or rootless), so a container of an account would not be that account on ' +
      'this node: let its agent run images as their own users with `--container-user image`',
  );
}

export function misnamed(image: string | null, group: number): DriverError {
  return new DriverError(
    'unknown',
    `the image ${image} has another group by the name "${group}" in its /etc/group, which the container engine would take for ` +
      `group ${group} of the job's account: rename it in the image`,
  );
}

/** A program that is in the container, and how the job's command has to name it. */
export interface MeantCommand {
  readonly write: string;
  /** Absolute. */
  readonly path: string;
}

/** The engine's own message, which is the cause of this error, is long and adds nothing. */
function commandNotFound(command: string, launch: TaskLaunch, meant: MeantCommand | null): Explanation {
  const shell = asShellCommand(launch.command);
  const remedy =
    shell !== null
      ? `a shell reads it as ${shell}`
      : meant !== null
        ? `did you mean ${meant.write} (${meant.path})?`
        : "correct the job's command, or use an image that has it";
  return {
    causeKind: 'command_not_found',
    message: `the image ${launch.image} has no program named "${command}": ${remedy}`,
  };
}

/**
 * Of a command that was looked for in the container itself.
 * @param meant null: nothing in it is like it
 */
export function missingCommand(command: string, launch: TaskLaunch, meant: MeantCommand | null): DriverError {
  const { causeKind, message } = commandNotFound(command, launch, meant);
  return new DriverError(causeKind, message);
}

/** A volume's directory or file is not there. */
export function missingSource(source: string): DriverError {
  return new DriverError('unknown', missingSourceMessage(source));
}

function missingSourceMessage(source: string): string {
  return (
    `there is no ${source} on the node to mount into the container: ` +
    "create it on the node or correct the job's volumes"
  );
}

export function noGpus(why: string): DriverError {
  return new DriverError('container_engine', noGpusMessage(why));
}

function noGpusMessage(why: string): string {
  return (
    `the container engine cannot give GPUs to containers: ${why}. Install the NVIDIA Container Toolkit on the node, ` +
    'then `nvidia-ctk runtime configure --runtime=docker` and restart Docker'
  );
}

export function nameTaken(key: TaskName): DriverError {
  const name = containerName(key);
  return new DriverError(
    'unknown',
    `the container name ${name} is taken by a container that is not this agent's: ` +
      `look at it with \`docker inspect ${name}\` and remove it with \`docker rm -f ${name}\``,
  );
}

/** Turns what the engine refuses, or does not answer, into an error of drivers. */
export async function explained<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const kind = error.status === null ? 'container_engine' : 'unknown';
    throw new DriverError(kind, error.message, { cause: error });
  }
}
