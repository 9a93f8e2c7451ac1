/**
 * Asks a process of its own why a task has failed. Heartbeats do not wait for it: the output of a task is as long and as
 * strange as the task likes. One output has a budget of processor time, so that a busy machine changes nothing, and a
 * deadline, both of which begin with its turn: what waits behind many others is read anyway. What is not known by
 * then is reported as unknown.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { TaskFailure } from '@muster/common/gangs';
import type { Logger } from '@muster/common/log';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import { type EndOfTask, type NodeMoment, unreadFailure } from './taskFailure.ts';

/** To the process, one at a time. */
export interface ReadOrder {
  readonly id: number;
  readonly end: EndOfTask;
  readonly now: NodeMoment;
}

/** From it, to the order of this id. */
export interface ReadAnswer {
  readonly id: number;
  /** null: the output could not be read within the budget. */
  readonly failure: TaskFailure | null;
}

/** The build puts it beside the bundle. */
export const failureReaderProgram = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, 'reader/main.ts')
  : join(import.meta.dirname, 'failure-reader.mjs');

export interface FailureReaderProcessOptions {
  /** Absolute path of the bundle, or of `reader/main.ts`. */
  readonly program: string;
  readonly now: () => NodeMoment;
  readonly log: Logger;
  /** Processor time for one output. Default: 2,000. */
  readonly budgetMs?: number;
  /** For one output, from the start of its turn. Default: 30,000. */
  readonly deadlineMs?: number;
  /** Outputs that are being read or wait for it; further ones are not read. Default: 1,000. */
  readonly waitingMax?: number;
}

/** Twenty times what 4 MiB of an ordinary output take. */
const budgetMsDefault = 2_000;
const deadlineMsDefault = 30_000;
/** Some times the tasks of a busy node: all of them may end at once. */
const waitingMaxDefault = 1_000;
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
  private waiting = 0;
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
    const { log, now, waitingMax = waitingMaxDefault } = this.options;
    this.closing.signal.throwIfAborted();
    const failure = this.waiting < waitingMax ? await this.readInTurn(end) : null;
    this.closing.signal.throwIfAborted();
    if (failure !== null) return failure;
    log.warn({ output: end.outputPath }, 'the output of a failed task could not be read in time');
    return unreadFailure(end, now());
  }

  /** null: nobody knows in time. */
  private async readInTurn(end: EndOfTask): Promise<TaskFailure | null> {
    this.waiting += 1;
    const turn = this.lastTurn.then(() => this.ask(end));
    this.lastTurn = turn;
    try {
      return await turn;
    } finally {
      this.waiting -= 1;
    }
  }

  close(): void {
    this.closing.abort(new Error('the reader of failures is closed'));
    this.end();
  }

  /** null: nobody knows in time. Resolves in any case. */
  private async ask(end: EndOfTask): Promise<TaskFailure | null> {
    if (this.closing.signal.aborted) return null;
    const { deadlineMs = deadlineMsDefault } = this.options;
    const reading = this.reading ?? this.start();
    clearTimeout(reading.idleTimer);
    this.lastId += 1;
    const order: ReadOrder = { id: this.lastId, end, now: this.options.now() };
    const answered = new Promise<TaskFailure | null>((resolve) => {
      reading.answer = resolve;
    });
    reading.child.send(order, () => {});
    // One that does not answer is stuck in a line, and will not receive either.
    const deadline = setTimeout(() => this.end(), deadlineMs);
    const failure = await answered;
    clearTimeout(deadline);
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
