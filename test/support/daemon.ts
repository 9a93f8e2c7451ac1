/**
 * A coordinator or an agent as a process of its own, started through the `muster` command that users run. It can be
 * killed and started again; an end that nobody asked for is remembered and fails the test file.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { musterProgram, repositoryDir } from './command.ts';
import { patienceMs } from './patience.ts';
import { waitFor } from './services.ts';

export interface DaemonOptions {
  /** Its name in failures: `coordinator`, `node-1`. */
  readonly title: string;
  /** Asked before every start. */
  readonly args: () => readonly string[];
  readonly env: () => Promise<NodeJS.ProcessEnv>;
  /** argv in front of the command's own, of a program that becomes what follows it. */
  readonly wrapper?: readonly string[];
  /** Absolute: the `muster` to start, asked before every start. Default: that of this checkout. */
  readonly program?: () => string;
  /** Everything it prints goes here, appended. */
  readonly logPath: string;
}

export interface DaemonEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Daemon {
  /** What it serves on, as it reported at its last start; null: nothing. */
  address: string | null = null;
  /** How often it has begun to serve. */
  timesServed = 0;
  /** Ends that no test asked for. */
  readonly unexpectedEnds: string[] = [];
  readonly options: DaemonOptions;
  private child: ChildProcess | null = null;
  private end: Promise<DaemonEnd> = Promise.resolve({ exitCode: null, signal: null });
  private endIsExpected = false;

  constructor(options: DaemonOptions) {
    this.options = options;
  }

  get isRunning(): boolean {
    return this.child !== null;
  }

  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error(`${this.options.title} does not run`);
    return pid;
  }

  /** Resolves when it serves. @throws {Error} with the end of its log, when it ends before that or takes too long */
  async start(): Promise<void> {
    const { serving } = await this.launch();
    const timeout = AbortSignal.timeout(patienceMs);
    const tooLate = new Promise<'late'>((resolve) =>
      timeout.addEventListener('abort', () => resolve('late')),
    );
    const first = await Promise.race([serving.then((address) => ({ address })), this.end, tooLate]);
    if (first === 'late' || !('address' in first)) {
      const output = this.log.slice(-4_000);
      throw new Error(`${this.options.title} did not start: ${JSON.stringify(first)}\n${output}`);
    }
    this.address = first.address;
    this.timesServed += 1;
  }

  /** Starts it and kills it after a while, whatever it is doing by then. */
  async startBriefly(lifeMs: number): Promise<void> {
    await this.launch();
    await delay(lifeMs);
    await this.kill();
  }

  /** `serving` resolves with its address once it serves, and never where it does not come that far. */
  private async launch(): Promise<{ readonly serving: Promise<string | null> }> {
    if (this.child !== null) throw new Error(`${this.options.title} runs already`);
    const { title, args, wrapper = [], logPath } = this.options;
    const muster = this.options.program?.() ?? musterProgram;
    const [program = muster, ...rest] = [...wrapper, muster, ...args()];
    const env = await this.options.env();
    const log = openSync(logPath, 'a');
    // Through the channel it reports that it serves, as to `muster up`. The channel also ends it should the tests be killed.
    const child = spawn(program, rest, { cwd: repositoryDir, env, stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    this.child = child;
    this.endIsExpected = false;
    this.end = new Promise((resolve) => {
      const ended = (exitCode: number | null, signal: NodeJS.Signals | null) => {
        this.child = null;
        if (!this.endIsExpected) {
          this.unexpectedEnds.push(`${title} ended with ${signal ?? `code ${exitCode}`}`);
        }
        resolve({ exitCode, signal });
      };
      child.on('error', () => ended(null, null));
      child.on('exit', ended);
    });
    const serving = new Promise<string | null>((resolve) => {
      child.on('message', (message: { kind: string; address?: string | null }) => {
        if (message.kind === 'serving') resolve(message.address ?? null);
      });
    });
    return { serving };
  }

  /** Sends it a signal and waits until it is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<DaemonEnd> {
    this.endIsExpected = true;
    this.child?.kill(signal);
    return this.ended();
  }

  /** Ends it by SIGTERM. @returns its end, which the caller has to find good */
  stop(): Promise<DaemonEnd> {
    return this.kill('SIGTERM');
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** For a daemon that is expected to give up by itself. */
  expectEnd(): Promise<DaemonEnd> {
    this.endIsExpected = true;
    return this.ended();
  }

  /** Stops or continues every thread of it, as a paused machine would. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Everything it has printed on stdout and stderr since its first start. */
  get log(): string {
    try {
      return readFileSync(this.options.logPath, 'utf8');
    } catch {
      return '';
    }
  }

  /** Resident memory now, MiB. */
  get residentMb(): number {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))?.[1];
    return Number(kilobytes) / 1024;
  }

  private async ended(): Promise<DaemonEnd> {
    const { title } = this.options;
    await waitFor(`${title} ends`, () => this.child === null);
    return this.end;
  }
}
