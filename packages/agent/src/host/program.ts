/** Programs that are run for what they print. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setPriority } from 'node:os';

/** How one run of the program ended. */
export type ProgramOutcome =
  | {
      readonly kind: 'exited';
      /** null: ended by a signal. */
      readonly status: number | null;
      readonly stdout: string;
      readonly stderr: string;
    }
  /** Missed its deadline and was killed; it may still be there, if it hangs in the kernel. */
  | { readonly kind: 'hung'; readonly pid: number }
  /** An earlier run was killed and is not gone yet; nothing was started behind it. */
  | { readonly kind: 'stuck'; readonly pid: number }
  /** Printed more than the limit and was killed. */
  | { readonly kind: 'too_long'; readonly stdout: string }
  | { readonly kind: 'not_started'; readonly reason: string };

export interface ProgramOptions {
  /** A path, or a name that is looked up in the PATH of `environment`. */
  readonly path: string;
  /** All that it gets; numbers are written as in the C locale. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Default: that of the agent. */
  readonly cwd?: string;
  /** Niceness, from -20 to 19. Default: that of the agent. */
  readonly niceness?: number;
  /** Of stdout; a program that prints more is killed. */
  readonly outputBytesMax: number;
  /** Ends a process group. Only a test that plays a process which cannot be killed replaces it. */
  readonly killGroup?: (pid: number) => void;
}

interface Run {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Resolves when the kernel has let go of the process. */
  readonly gone: Promise<void>;
}

const stderrBytesMax = 4096;
const killTakesMs = 500;
/** Enough to recognise what a program printed that was cut off. */
const headBytes = 4096;

/** A program that is run again and again, never twice at the same time. */
export class Program {
  private readonly options: ProgramOptions;
  private current: Run | null = null;
  private previous: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(options: ProgramOptions) {
    this.options = options;
  }

  get path(): string {
    return this.options.path;
  }

  /** Never rejects. Runs that are asked for meanwhile wait for their turn. */
  run(args: readonly string[], deadlineMs: number): Promise<ProgramOutcome> {
    const outcome = this.previous.then(() => this.runNow(args, deadlineMs));
    this.previous = outcome;
    return outcome;
  }

  /** Kills what runs, and resolves when it is gone: in uninterruptible sleep that can take as long as the driver likes. */
  async close(): Promise<void> {
    this.closed = true;
    const run = this.current;
    if (run === null) return;
    this.kill(run.pid);
    await run.gone;
  }

  private async runNow(args: readonly string[], deadlineMs: number): Promise<ProgramOutcome> {
    await this.lastGone();
    if (this.closed) return { kind: 'not_started', reason: 'its source is closed' };
    if (this.current !== null) return { kind: 'stuck', pid: this.current.pid };
    let child: ChildProcess;
    try {
      child = spawn(this.options.path, args, {
        env: { ...this.options.environment, LC_ALL: 'C' },
        ...(this.options.cwd === undefined ? {} : { cwd: this.options.cwd }),
        stdio: ['ignore', 'pipe', 'pipe'],
        // A group of its own: the path may name a script, and what that started has to end with it.
        detached: true,
      });
    } catch (error) {
      return { kind: 'not_started', reason: reasonOf(error) };
    }
    return this.watch(child, deadlineMs);
  }

  /** A killed process needs a moment; one that needs longer hangs in the kernel. */
  private async lastGone(): Promise<void> {
    if (this.current === null) return;
    const { promise: patience, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, killTakesMs);
    await Promise.race([this.current.gone, patience]);
    clearTimeout(timer);
  }

  private watch(child: ChildProcess, deadlineMs: number): Promise<ProgramOutcome> {
    const { promise: gone, resolve: leave } = Promise.withResolvers<void>();
    const { promise: outcome, resolve: settle } = Promise.withResolvers<ProgramOutcome>();
    const { pid } = child;
    if (pid !== undefined) {
      this.current = { child, pid, gone };
      this.putBehindOthers(pid);
    }

    const stdout = new BoundedText(this.options.outputBytesMax);
    const stderr = new BoundedText(stderrBytesMax);
    const abandon = (ending: ProgramOutcome): void => {
      if (pid !== undefined && this.current?.child === child) this.kill(pid);
      child.stdout?.destroy();
      child.stderr?.destroy();
      settle(ending);
    };
    const deadline = setTimeout(() => {
      abandon(pid === undefined ? notStarted('no answer') : { kind: 'hung', pid });
    }, deadlineMs);

    child.stdout?.on('data', (chunk: Buffer) => {
      if (stdout.add(chunk)) return;
      abandon({ kind: 'too_long', stdout: stdout.head(headBytes) });
    });
    child.stderr?.on('data', (chunk: Buffer) => stderr.add(chunk));
    child.once('error', (error) => {
      // Also emitted when a signal could not be delivered; by then there is a process, and its `close` settles the outcome.
      if (pid === undefined) settle(notStarted(reasonOf(error)));
    });
    child.once('exit', () => {
      this.current = null;
      leave();
    });
    child.once('close', (status) => {
      settle({ kind: 'exited', status, stdout: stdout.text(), stderr: stderr.text() });
    });
    return outcome.finally(() => clearTimeout(deadline));
  }

  private putBehindOthers(pid: number): void {
    const { niceness } = this.options;
    try {
      if (niceness !== undefined) setPriority(pid, niceness);
    } catch {
      // It has ended already.
    }
  }

  private kill(pid: number): void {
    (this.options.killGroup ?? killGroup)(pid);
  }
}

/** Keeps the first bytes of a stream. */
class BoundedText {
  private readonly bytesMax: number;
  private chunks: Buffer[] = [];
  private bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** false: it did not fit, and was dropped. */
  add(chunk: Buffer): boolean {
    if (this.bytes + chunk.length > this.bytesMax) return false;
    this.bytes += chunk.length;
    this.chunks.push(chunk);
    return true;
  }

  text(): string {
    return Buffer.concat(this.chunks).toString('utf8').replaceAll('\r\n', '\n');
  }

  head(bytes: number): string {
    return Buffer.concat(this.chunks, Math.min(this.bytes, bytes)).toString('utf8');
  }
}

function notStarted(reason: string): ProgramOutcome {
  return { kind: 'not_started', reason };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such program';
  if (code === 'EACCES') return 'it may not be executed';
  return message;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended in the same moment, or it is not ours to kill: then it counts as running until it ends by itself.
  }
}
