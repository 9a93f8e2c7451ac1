/** `muster` commands as users run them: the built program, as a process of its own. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { patienceMs } from './patience.ts';
import { waitFor } from './services.ts';

export const repositoryDir: string = fileURLToPath(new URL('../../', import.meta.url));

/** Vitest rebuilds what this starts before the first test that needs it. */
export const musterProgram: string = join(repositoryDir, 'packages/cli/bin/muster');

export interface CommandOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly stdin?: string;
  /** Absolute: another `muster` than that of this checkout. */
  readonly program?: string;
  /** Root is held back by the modes of files, as everybody else is. */
  readonly obeysModes?: boolean;
}

export interface CommandResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class MusterCommand {
  stdout = '';
  stderr = '';
  readonly ended: Promise<CommandResult>;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;

  constructor(args: readonly string[], options: CommandOptions) {
    const { env, cwd, stdin = '', obeysModes = false, program: muster = musterProgram } = options;
    // Not another user: that one may not be able to reach the programs themselves.
    const dropped = ['--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all'];
    const argv = obeysModes ? ['setpriv', ...dropped, muster, ...args] : [muster, ...args];
    const [program = '', ...rest] = argv;
    const child = spawn(program, rest, {
      cwd,
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: patienceMs,
      killSignal: 'SIGKILL',
    });
    this.child = child;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    // A command that refuses early does not read all it is given.
    child.stdin.on('error', () => {});
    child.stdin.end(stdin);
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (exitCode, signal) => {
        const { stdout, stderr } = this;
        resolve({ exitCode, signal, stdout, stderr });
      });
    });
  }

  /** What a terminal does at Ctrl-C, or a supervisor at its end. */
  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Waits until it has printed `text` on stdout or stderr. */
  async untilPrinted(text: string): Promise<void> {
    await waitFor(
      `"${text}" is printed`,
      () => this.stdout.includes(text) || this.stderr.includes(text) || this,
      {
        until: (seen) => seen === true,
      },
    );
  }
}
