/** Runs programs of this machine, for what makes and breaks hosts. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { patienceMs } from '../patience.ts';

export interface ProgramResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it to its end, good or bad. */
export function runProgram(argv: readonly string[], timeoutMs = patienceMs): Promise<ProgramResult> {
  const [program = '', ...args] = argv;
  const options = {
    encoding: 'utf8',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: 64 * 1024 * 1024,
  } as const;
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : (error.code ?? null);
      if (typeof exitCode !== 'string') resolve({ exitCode, stdout, stderr });
      // It could not be started, which has a code in words.
      else reject(new Error(`${program} could not be started: ${exitCode}`, { cause: error }));
    });
  });
}

/** @throws {Error} with its output, unless it ends well */
export async function mustRun(argv: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(argv);
  if (exitCode === 0) return stdout;
  throw new Error(`${argv.join(' ')}: ended with ${exitCode}: ${(stderr || stdout).trim()}`);
}

export function childrenOf(pid: number): readonly number[] {
  return readLinesOf(`/proc/${pid}/task/${pid}/children`, ' ').map(Number);
}

/** Every process of this kernel that has not ended. */
export function allPids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Pieces of a file of the kernel; none where it is gone. */
export function readLinesOf(path: string, separator = '\n'): readonly string[] {
  try {
    return readFileSync(path, 'utf8')
      .split(separator)
      .filter((piece) => piece.trim() !== '');
  } catch {
    return [];
  }
}

/** @returns false: it is gone already */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
