/**
 * A coordinator or an agent inside a host, started through the `muster` command that users run. Unlike a process beside
 * the tests it is not our child but the child of the `nsenter` that brought it there; signals go to the process itself.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { musterProgram } from '../command.ts';
import type { DaemonEnd } from '../daemon.ts';
import { waitFor } from '../services.ts';
import { childrenOf, signalProcess } from './programs.ts';

function howEnded({ exitCode, signal }: DaemonEnd): string {
  return signal ?? `code ${exitCode}`;
}

/** What each thread of a process that does not end waits for, in the words of the kernel: `R 0, S futex_wait_queue`. */
function statesOfThreads(pid: number): string {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  const states = threads.map((thread) => {
    const state = /^State:\s+(\S)/m.exec(readFileSync(`${thread}/status`, 'utf8'))?.[1];
    return `${state} ${readFileSync(`${thread}/wchan`, 'utf8')}`;
  });
  return `its threads: ${states.join(', ')}`;
}

/** Of this machine, which all hosts share. */
function memoryLeft(): string {
  const kilobytes = /^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
  return `with ${Math.round(Number(kilobytes) / 1024)} MiB of memory left on this machine`;
}

export interface HostProcessOptions {
  /** Its name in failures: `coordinator`, `agent of host-1`. */
  readonly title: string;
  /** argv in front of the command's own, asked before every start: the host may have been rebooted. */
  readonly enter: () => readonly string[];
  readonly args: () => readonly string[];
  readonly env: () => Promise<NodeJS.ProcessEnv>;
  /** Everything it prints goes here, appended. */
  readonly logPath: string;
}

export class HostProcess {
  /** How often it has begun to serve. */
  timesServed = 0;
  /** Ends that no test asked for. */
  readonly unexpectedEnds: string[] = [];
  readonly options: HostProcessOptions;
  private child: ChildProcess | null = null;
  private end: DaemonEnd = { exitCode: null, signal: null };
  private endIsExpected = false;

  constructor(options: HostProcessOptions) {
    this.options = options;
  }

  get isRunning(): boolean {
    return this.child !== null;
  }

  /** As this test sees it; the host has another number for it. */
  get pid(): number {
    const [pid] = childrenOf(this.child?.pid ?? -1);
    if (pid === undefined) throw new Error(`${this.options.title} does not run`);
    return pid;
  }

  /** Resolves when it serves. @throws {Error} with the end of its log, when it ends before that or takes too long */
  async start(): Promise<void> {
    if (this.child !== null) throw new Error(`${this.options.title} runs already`);
    const { title, enter, args, logPath } = this.options;
    const [program = '', ...rest] = [...enter(), musterProgram, ...args()];
    const env = await this.options.env();
    const log = openSync(logPath, 'a');
    // Through the channel it reports that it serves. The channel also ends it should the tests be killed. In a session of its own
    // it gets its share of the processors, however much the tests run beside it.
    const child = spawn(program, rest, { cwd: '/', env, detached: true, stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    this.child = child;
    this.endIsExpected = false;
    let serves = false;
    child.on('message', (message: { kind: string }) => {
      serves ||= message.kind === 'serving';
    });
    const ended = (exitCode: number | null, signal: NodeJS.Signals | null) => {
      this.child = null;
      this.end = { exitCode, signal };
      if (!this.endIsExpected)
        this.unexpectedEnds.push(`${title} ended with ${howEnded(this.end)}, ${memoryLeft()}`);
    };
    child.on('error', () => ended(null, null));
    child.on('exit', ended);
    // Of many hosts the last can fail because memory runs out: how it ended, and how much was left then, shows that.
    const state = () => `${memoryLeft()}; its log ends with:\n${this.log.slice(-4_000)}`;
    await waitFor(`${title} serves`, () => (serves || this.child === null ? true : state()), {
      until: (seen) => seen === true,
    });
    if (!serves) throw new Error(`${title} did not start, but ended with ${howEnded(this.end)}, ${state()}`);
    this.timesServed += 1;
  }

  /** Sends it a signal and waits until it is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<DaemonEnd> {
    this.endIsExpected = true;
    if (this.child !== null) {
      signalProcess(this.pid, signal);
      // nsenter stops together with its child, and notices the end only once it runs again.
      this.child.kill('SIGCONT');
    }
    await this.untilEnded();
    return this.end;
  }

  /** Ends it by SIGTERM. @returns its end, which the caller has to find good */
  stop(): Promise<DaemonEnd> {
    return this.kill('SIGTERM');
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** SIGSTOP: its host runs on, it does not. */
  pause(): void {
    signalProcess(this.pid, 'SIGSTOP');
  }

  resume(): void {
    const { pid } = this;
    this.child?.kill('SIGCONT');
    signalProcess(pid, 'SIGCONT');
  }

  /** For an end that comes with the end of its host. */
  expectEnd(): void {
    this.endIsExpected = true;
  }

  async untilEnded(): Promise<void> {
    const state = () =>
      this.child === null
        ? true
        : `${statesOfThreads(this.pid)}; its log ends with:\n${this.log.slice(-2_000)}`;
    await waitFor(`${this.options.title} ends`, () => (this.child === null ? true : state()), {
      until: (seen) => seen === true,
      intervalMs: 100,
    });
  }

  /** Everything it has printed on stdout and stderr since its first start. */
  get log(): string {
    try {
      return readFileSync(this.options.logPath, 'utf8');
    } catch {
      return '';
    }
  }
}
