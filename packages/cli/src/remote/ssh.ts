/** Runs scripts on other machines with the system's own `ssh`: its keys, its agent, its configuration, its jump hosts. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { CliError } from '../errors.ts';
import { shellText } from '../output/text.ts';
import { sshFailure } from './sshFailure.ts';
import type { SshTarget } from './sshTarget.ts';

export interface SshOutcome {
  /** Of the script: 0 to 254. */
  readonly exitCode: number;
  readonly stdout: string;
  /** The newest of it. */
  readonly stderr: string;
}

export interface SshCall {
  /** Standard input of the script: the only way by which a secret goes. Default: none. */
  readonly input?: string | Readable;
  /** Ends `ssh`. */
  readonly signal?: AbortSignal;
}

export interface SshPrograms {
  /** Environment of `ssh`: HOME, SSH_AUTH_SOCK, PATH. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Nobody is asked anything, and a machine that is gone is noticed within half a minute. */
export const unattendedSsh: readonly string[] = [
  'BatchMode=yes',
  'ConnectTimeout=15',
  'ServerAliveInterval=10',
  'ServerAliveCountMax=3',
].flatMap((option) => ['-o', option]);

/** The answer of `doctor` has some kilobytes. */
const outputBytesMax = 4 * 1024 * 1024;
const stderrBytesMax = 16 * 1024;
const sshFailed = 255;

/**
 * @param script of a POSIX shell; visible to every user of both machines
 * @throws {CliError} when there is no connection, or it broke; with the remedy
 */
export async function runOverSsh(
  target: SshTarget,
  script: string,
  { variables }: SshPrograms,
  { input, signal }: SshCall = {},
): Promise<SshOutcome> {
  // The login shell there may be any: it only starts a POSIX one.
  const remote = shellText(['sh', '-c', script]);
  const child = spawn('ssh', ['-T', ...unattendedSsh, '--', target.text, remote], {
    env: variables,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(signal === undefined ? {} : { signal }),
  });
  const { stdin, stdout, stderr } = child;
  const output: Buffer[] = [];
  let bytes = 0;
  let errors = '';
  stdout.on('data', (data: Buffer) => {
    bytes += data.length;
    if (bytes <= outputBytesMax) output.push(data);
  });
  stderr.on('data', (data: Buffer) => {
    errors = (errors + data.toString()).slice(-stderrBytesMax);
  });
  // A script that ends before it has read everything, or a connection that breaks: the exit code tells.
  stdin.on('error', () => {});
  if (input === undefined || typeof input === 'string') stdin.end(input ?? '');
  else input.on('error', () => child.kill()).pipe(stdin);
  const exitCode = await endOfSsh(child);
  if (signal?.aborted === true) throw new CliError('interrupted');
  if (exitCode === sshFailed || exitCode === null) throw sshFailure(target, errors);
  return { exitCode, stdout: Buffer.concat(output).toString(), stderr: errors };
}

/** @returns null: a signal has ended it */
function endOfSsh(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      if (error.name === 'AbortError') return;
      const isMissing = 'code' in error && error.code === 'ENOENT';
      reject(
        new CliError(isMissing ? 'there is no ssh on PATH' : `ssh could not be started: ${error.message}`, {
          cause: error,
          hints: isMissing ? ['Install the OpenSSH client: apt-get install openssh-client'] : [],
        }),
      );
    });
    child.on('close', (code) => resolve(code));
  });
}
