/**
 * Asks a process of its own why a task has failed. Heartbeats do not wait for it: the output of a task is as long and as
 * strange as the task likes. One output has a budget of processor time, so that a busy machine changes nothing, and every
 * question has a deadline; what is not known by then is said to be unknown.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { messageOf } from '@muster/common/errors';
import type { TaskFailure } from '@muster/common/gangs';
import type { Logger } from '@muster/common/log';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import type { ReadAnswer, ReadOrder } from './reader/protocol.ts';
import { type EndOfTask, type NodeMoment, unreadFailure } from './taskFailure.ts';

export interface FailureReaderProcessOptions {
  /** Absolute path of the bundle, or of `reader/main.ts`. */
  readonly program: string;
  readonly now: () => NodeMoment;
  readonly log: Logger;
  /** Processor time for one output. Left out: 2,000. */
  readonly budgetMs?: number;
  /** From the question to the answer, the time in which others are read included. Left out: 30,000. */
  readonly deadlineMs?: number;
}

/** Twenty times what 4 MiB of an ordinary output take. */
const budgetMsDefault = 2_000;
const deadlineMsDefault = 30_000;
/** How long the process stays without work. */
const idleMs = 5_000;
/** Behind the agent, but not behind every program of a busy node: a gang waits for the answer. */
const priority = 5;

interface Reading {
  readonly child: ChildProcess;
  /** Of the only question that it has now. */
  answer: (failure: TaskFailure | null) => void;
  idleTimer: NodeJS.Timeout | undefined;
}

export class FailureReaderProcess {
  private readonly options: FailureReaderProcessOptions;
  private reading: Reading | null = null;
  private lastTurn: Promise<unknown> = Promise.resolve();
  private lastId = 0;
  private readonly closing = new AbortController();

  constructor(options: FailureReaderProcessOptions) {
    this.options = options;
  }

  /** null: none runs. */
  get pid(): number | null {
    return this.reading?.child.pid ?? null;
  }

  /**
   * One at a time, in the order in which they were asked for.
   * @param end a bad one
   * @throws {Error} after `close`
   */
  async read(end: EndOfTask): Promise<TaskFailure> {
    const { log, now, deadlineMs = deadlineMsDefault } = this.options;
    const deadline = AbortSignal.timeout(deadlineMs);
    const stop = AbortSignal.any([deadline, this.closing.signal]);
    const turn = this.lastTurn.then(() => this.ask(end, stop));
    this.lastTurn = turn;
    const failure = await Promise.race([turn, whenAborted(stop)]);
    this.closing.signal.throwIfAborted();
    if (failure !== null) return failure;
    log.warn({ output: end.outputPath }, 'the output of a failed task could not be read in time');
    return unreadFailure(end, now());
  }

  close(): void {
    this.closing.abort(new Error('the reader of failures is closed'));
    this.end();
  }

  /** null: nobody knows in time. Resolves in any case. */
  private async ask(end: EndOfTask, stop: AbortSignal): Promise<TaskFailure | null> {
    if (stop.aborted) return null;
    const reading = this.reading ?? this.start();
    clearTimeout(reading.idleTimer);
    this.lastId += 1;
    const order: ReadOrder = { id: this.lastId, end, now: this.options.now() };
    const answered = new Promise<TaskFailure | null>((resolve) => {
      reading.answer = resolve;
    });
    reading.child.send(order, () => {});
    // One that does not answer is stuck in a line, and will not hear either.
    const abort = () => this.end();
    stop.addEventListener('abort', abort, { once: true });
    const failure = await answered;
    stop.removeEventListener('abort', abort);
    reading.idleTimer = setTimeout(() => this.end(), idleMs);
    reading.idleTimer.unref();
    return failure;
  }

  private start(): Reading {
    const { program, log, budgetMs = budgetMsDefault } = this.options;
    const child = fork(program, [String(budgetMs)], {
      env: {},
      execArgv: [...closedNodeFlags, '--max-old-space-size=256'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const reading: Reading = { child, answer: () => {}, idleTimer: undefined };
    this.reading = reading;
    if (child.pid !== undefined) putBehindAgent(child.pid);
    child.on('message', ({ id, failure }: ReadAnswer) => {
      if (id === this.lastId) reading.answer(failure);
    });
    const gone = (how: string) => {
      if (this.reading !== reading) return;
      this.reading = null;
      log.warn({ how }, 'the reader of failures has ended');
      reading.answer(null);
    };
    child.once('error', (error) => gone(messageOf(error)));
    child.once('exit', (exitCode, signal) => gone(signal ?? `exit status ${exitCode}`));
    return reading;
  }

  private end(): void {
    const { reading } = this;
    if (reading === null) return;
    this.reading = null;
    clearTimeout(reading.idleTimer);
    reading.child.kill('SIGKILL');
    reading.answer(null);
  }
}

function putBehindAgent(pid: number): void {
  try {
    setPriority(pid, priority);
  } catch {
    // It has ended already, or the node does not allow it.
  }
}

function whenAborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
