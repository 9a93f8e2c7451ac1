/** A process of our own that receives and sends one JSON object per line, until it ends, hangs or is killed. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from './errors.ts';
import { LineSplitter } from './lineSplitter.ts';

export interface JsonLinesChildOptions<Message> {
  /** argv. */
  readonly command: readonly string[];
  /** Characters of a line. A longer line is not a message of Muster, and ends the child. */
  readonly lineLengthMax: number;
  /** An error that it throws ends the child, as a line that is not JSON does. */
  readonly onMessage: (message: Message) => void;
}

export interface ChildEnd {
  /** null: it did not start, or a signal ended it. */
  readonly exitCode: number | null;
  /** `signal SIGSEGV: what it printed last` */
  readonly description: string;
}

/** The last of what it prints goes into descriptions. */
const lastErrorLengthMax = 500;
/** A grandchild may keep the pipes open after the end of the child. */
const finalOutputMs = 500;

export class JsonLinesChild<Message> {
  /** Resolves when the process is gone; one that hangs in the kernel survives SIGKILL. */
  readonly gone: Promise<ChildEnd>;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private lastErrorLine = '';

  constructor({ command, lineLengthMax, onMessage }: JsonLinesChildOptions<Message>) {
    const [program = '', ...args] = command;
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child = child;
    // Its end is noticed by itself; the last write to it may fail.
    child.stdin.on('error', () => {});
    const lines = new LineSplitter(lineLengthMax);
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      try {
        for (const line of lines.push(part)) onMessage(JSON.parse(line) as Message);
      } catch (error) {
        this.lastErrorLine = `it sent an invalid message: ${messageOf(error)}`;
        this.kill();
      }
    });
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      this.lastErrorLine = (this.lastErrorLine + part).slice(-lastErrorLengthMax);
    });
    this.gone = this.untilGone();
  }

  private async untilGone(): Promise<ChildEnd> {
    const { child } = this;
    const isClosed = new Promise((resolve) => child.once('close', resolve));
    const end = await new Promise<ChildEnd>((resolve) => {
      child.once('error', ({ message }) => resolve({ exitCode: null, description: message }));
      child.once('exit', (exitCode, signal) => {
        const description = signal === null ? `exit status ${exitCode}` : `signal ${signal}`;
        resolve({ exitCode, description });
      });
    });
    await Promise.race([isClosed, delay(finalOutputMs)]);
    const lastLine = this.lastErrorLine.trim().split('\n').at(-1) ?? '';
    return lastLine === '' ? end : { ...end, description: `${end.description}: ${lastLine}` };
  }

  /** null: it did not start. */
  get pid(): number | null {
    return this.child.pid ?? null;
  }

  /** Of one that has ended, nothing comes of it. */
  send(message: object): void {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
