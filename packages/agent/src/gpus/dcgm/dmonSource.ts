/**
 * Profiling values of `dcgmi dmon`: one process that prints a row per card and second, because starting it costs a third
 * of a second. It is started by the first sample, and again by a later one when it has ended, less and less often.
 *
 * A process that prints nothing any longer hangs with its host engine. It is killed, and nothing is started until it is
 * gone: behind a stuck driver every further reader would be stuck too.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import { LineSplitter } from '@muster/common/lineSplitter';
import { backoffMs } from '@muster/common/retry';
import { Program } from '../../host/program.ts';
import type { GpuActivity, ProfilingSource } from '../gpuSource.ts';
import { DmonParser, dmonFieldIds, parseDiscovery } from './dmonOutput.ts';

export interface DmonOptions {
  readonly dcgmiPath: string;
  /** Where `dcgmi` and what it needs are looked for: PATH of the agent. */
  readonly searchPath: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** From its start on, how long samples wait for the first rows of a process. */
  readonly firstRowsTimeoutMs?: number;
  /** Rows older than this are not used, and a process that prints nothing for this duration is stuck. */
  readonly silenceMaxMs?: number;
  /** Between a process that ended and the next one. */
  readonly restart?: { readonly initialMs: number; readonly maxMs: number };
}

const intervalMs = 1_000;
const discoveryTimeoutMs = 5_000;
/** `discovery -l` prints under 500 bytes a card. */
const discoveryBytesMax = 256 * 1024;
const lineLengthMax = 16 * 1024;
/** A second's rows of 16 cards are 3 KB; a sample is taken at least every minute. */
const bytesBetweenSamplesMax = 1024 * 1024;
const stopGraceMs = 2_000;

export function createDmonSource(options: DmonOptions): ProfilingSource {
  return new DmonSource(options);
}

class DmonSource implements ProfilingSource {
  readonly name = 'dcgmi';
  private readonly options: Required<DmonOptions>;
  private run: Run | null = null;
  private failures = 0;
  private restartAtMs = 0;
  private lastError = 'has not been started';
  private closed = false;

  constructor(options: DmonOptions) {
    this.options = {
      firstRowsTimeoutMs: 4_000,
      silenceMaxMs: 10 * intervalMs,
      restart: { initialMs: 2_000, maxMs: 60_000 },
      ...options,
    };
  }

  async sample(): Promise<ReadonlyMap<string, GpuActivity>> {
    const { clock, silenceMaxMs } = this.options;
    if (this.closed) throw this.failure('is closed');
    if (this.run === null) {
      if (clock.monotonicMs() < this.restartAtMs) throw this.failure(this.lastError);
      this.begin();
    }
    const { run } = this;
    await run?.firstRows;
    if (run === null || run !== this.run) throw this.failure(this.lastError);
    run.bytesSinceSample = 0;
    if (clock.monotonicMs() - run.lastRowAtMs > silenceMaxMs) {
      run.kill('has printed nothing for too long; check that nv-hostengine works');
      throw this.failure(run.problem ?? this.lastError);
    }
    if (run.rows.size === 0) throw this.failure('has printed no rows yet');
    this.failures = 0;
    return run.activities(clock.monotonicMs() - silenceMaxMs);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.run?.stop();
  }

  private begin(): void {
    const run = new Run(this.options);
    this.run = run;
    void run.ended.then((problem) => {
      this.run = null;
      this.lastError = problem;
      this.failures += 1;
      this.restartAtMs = this.options.clock.monotonicMs() + backoffMs(this.options.restart, this.failures);
    });
  }

  private failure(what: string): Error {
    return new Error(`${this.options.dcgmiPath} dmon ${what}`);
  }
}

/** From the question which card has which number to the end of the process that prints about them. */
class Run {
  readonly rows = new Map<number, { readonly activity: GpuActivity; readonly atMs: number }>();
  /** Resolves when no process of it is left, with what ended it. */
  readonly ended: Promise<string>;
  /** Resolves with the first row, with the end, or when waiting for them has taken too long. */
  readonly firstRows: Promise<void>;
  /** Why it is being killed, or what it printed itself. */
  problem: string | null = null;
  lastRowAtMs: number;
  bytesSinceSample = 0;
  private readonly options: Required<DmonOptions>;
  private readonly parser = new DmonParser();
  private readonly firstRow = Promise.withResolvers<void>();
  private isStopping = false;
  private uuids: ReadonlyMap<number, string> = new Map();
  private child: ChildProcess | null = null;
  private readonly lines = new LineSplitter(lineLengthMax);
  private readonly environment: Readonly<Record<string, string>>;
  private readonly discovery: Program;

  constructor(options: Required<DmonOptions>) {
    this.options = options;
    this.environment = { PATH: options.searchPath };
    const { dcgmiPath: path } = options;
    this.discovery = new Program({ path, environment: this.environment, outputBytesMax: discoveryBytesMax });
    this.lastRowAtMs = options.clock.monotonicMs();
    const timer = setTimeout(this.firstRow.resolve, options.firstRowsTimeoutMs);
    this.firstRows = this.firstRow.promise.finally(() => clearTimeout(timer));
    this.ended = this.execute().catch(messageOf);
    void this.ended.then(() => this.firstRow.resolve());
  }

  activities(sinceMs: number): ReadonlyMap<string, GpuActivity> {
    const found = new Map<string, GpuActivity>();
    for (const [gpuId, { activity, atMs }] of this.rows) {
      const uuid = this.uuids.get(gpuId);
      if (uuid !== undefined && atMs >= sinceMs) found.set(uuid, activity);
    }
    return found;
  }

  kill(problem: string): void {
    this.problem ??= problem;
    this.signal('SIGKILL');
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    void this.discovery.close();
    this.signal('SIGTERM');
    const timer = setTimeout(() => this.signal('SIGKILL'), stopGraceMs);
    await this.ended;
    clearTimeout(timer);
  }

  private async execute(): Promise<string> {
    const listing = await this.discover();
    this.uuids = parseDiscovery(listing);
    if (this.uuids.size === 0)
      return `has nothing to print: discovery -l names no GPU (${firstLine(listing)})`;
    if (this.isStopping) return 'was stopped';
    return this.print();
  }

  private async discover(): Promise<string> {
    const outcome = await this.discovery.run(['discovery', '-l'], discoveryTimeoutMs);
    switch (outcome.kind) {
      case 'exited':
        if (outcome.status === 0) return outcome.stdout;
        throw new Error(`failed: discovery -l: ${firstLine(outcome.stdout) || firstLine(outcome.stderr)}`);
      case 'hung':
      case 'stuck':
        // Killed is not gone, and nothing is started beside it.
        await this.discovery.close();
        throw new Error(`failed: discovery -l: no answer within ${discoveryTimeoutMs / 1_000} s`);
      case 'too_long':
        throw new Error('failed: discovery -l prints without end');
      case 'not_started':
        throw new Error(
          `cannot be run, since ${outcome.reason}; install DCGM, or name the path with --dcgmi`,
        );
      default: {
        const never: never = outcome;
        return never;
      }
    }
  }

  private print(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const child = spawn(
      this.options.dcgmiPath,
      ['dmon', '-e', dmonFieldIds, '-d', String(intervalMs)],
      // A group of its own, so that what a wrapper script starts can be ended with it.
      { env: { ...this.environment, LC_ALL: 'C' }, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
    );
    this.child = child;
    this.lastRowAtMs = this.options.clock.monotonicMs();
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.read(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.count(text);
      this.note(text);
    });
    child.once('error', (error) => {
      this.problem ??= `failed: ${error.message}`;
      if (child.pid === undefined) resolve(this.problem);
    });
    child.once('exit', (code, signal) => {
      const how = signal === null ? `code ${code}` : signal;
      resolve(this.problem ?? `ended with ${how}`);
    });
    return promise;
  }

  private read(text: string): void {
    this.count(text);
    let lines: readonly string[] = [];
    try {
      lines = this.lines.push(text);
    } catch {
      this.kill('prints something other than rows');
    }
    for (const line of lines) {
      const found = this.parser.line(line);
      if (found.kind === 'text') this.note(found.text);
      if (found.kind !== 'row' || !this.uuids.has(found.row.gpuId)) continue;
      this.lastRowAtMs = this.options.clock.monotonicMs();
      this.rows.set(found.row.gpuId, { activity: found.row.activity, atMs: this.lastRowAtMs });
      this.firstRow.resolve();
    }
  }

  private note(text: string): void {
    if (text.trim() !== '') this.problem ??= `says: ${firstLine(text)}`;
  }

  private count(text: string): void {
    this.bytesSinceSample += text.length;
    if (this.bytesSinceSample > bytesBetweenSamplesMax) this.kill('prints far more than rows');
  }

  private signal(signal: NodeJS.Signals): void {
    const { child } = this;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // It has ended meanwhile; `exit` follows.
    }
  }
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0]?.slice(0, 200) ?? '';
}
