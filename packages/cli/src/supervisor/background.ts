/** `muster up --detach`: the same command once more, in a session of its own, with its output in a file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { readUpState } from './upState.ts';

const pollMs = 50;

export function upLogPath(dataDir: string): string {
  return join(dataDir, 'up.log');
}

/**
 * Starts it and waits until it serves. What it has printed by then is printed here.
 * @param args of `muster`, without `--detach`
 */
export async function upInBackground(
  { io, environment }: Context,
  dataDir: string,
  args: readonly string[],
): Promise<ExitCode> {
  const logPath = upLogPath(dataDir);
  const log = openSync(logPath, 'a', 0o600);
  const { size } = statSync(logPath);
  const [program = '', ...command] = environment.programCommand;
  const child = spawn(program, [...command, ...args], {
    cwd: environment.workingDir,
    // Neither Ctrl-C here, nor the end of this terminal or of an ssh connection reaches another session.
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...environment.variables, MUSTER_CALLED_AS: environment.programName },
  });
  closeSync(log);
  const stop = abortOnStopRequest(io);
  try {
    const ended = endOf(child);
    for (;;) {
      const serving = readUpState(dataDir);
      if (serving !== null && serving.pid === child.pid && serving.address !== null) break;
      const end = await Promise.race([ended, sleep(pollMs, null)]);
      if (end !== null) {
        await io.stderr.write(outputSince(logPath, size));
        return end;
      }
      if (stop.signal.aborted) child.kill('SIGTERM');
    }
    await io.stdout.write(outputSince(logPath, size));
    return exitCodes.ok;
  } finally {
    stop.dispose();
    child.unref();
  }
}

function endOf(child: ChildProcess): Promise<ExitCode> {
  return new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(new CliError(`muster up could not be started: ${error.message}`, { cause: error })),
    );
    child.on('exit', (code, signal) =>
      resolve((signal === null ? (code ?? exitCodes.refused) : exitCodes.refused) as ExitCode),
    );
  });
}

/** What was written behind that byte. */
function outputSince(path: string, byte: number): string {
  return readFileSync(path).subarray(byte).toString('utf8');
}
