/** A CLI call inside the test's process: what it writes is kept, Ctrl-C is a method, time is the test's. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Clock } from '@muster/common/clock';
import { onTestFinished } from 'vitest';
import { patienceMs } from '../../../../test/support/patience.ts';
import { compileCache } from '../../../../test/support/services.ts';
import type { Context } from '../context.ts';
import { type ProgramEnvironment, readEnvironment } from '../environment.ts';
import type { Io, Output } from '../io.ts';
import { makeColours } from '../output/colours.ts';
import type { View } from '../output/table.ts';
import { runCli } from '../program.ts';
import {
  type Answers,
  type FakeCoordinator,
  fakeToken,
  startFakeCoordinator,
  submittedAtMs,
} from './fakeCoordinator.ts';

export interface TestOptions {
  readonly environment?: Partial<ProgramEnvironment>;
  /** Terminal of this width; null or absent: no terminal. */
  readonly columns?: number | null;
  /** Height of that terminal. */
  readonly rows?: number;
  readonly stdin?: string;
  readonly nowMs?: number;
}

export interface TestCall {
  readonly context: Context;
  readonly home: string;
  stdout(): string;
  /** Without the escape sequences of colours and progress. */
  stderr(): string;
  stdoutBytes(): Buffer;
  pressCtrlC(): void;
  /** Types a key; it has no effect unless the command listens to keys. */
  press(key: string): void;
  resize(columns: number, rows: number): void;
  readonly keyListeners: ReadonlySet<unknown>;
}

/** Variables of a fresh home directory, with one known coordinator. */
export function newCall(address: string | null, options: TestOptions = {}): TestCall {
  const home = temporaryDir();
  const variables = {
    HOME: home,
    // Programs that the command starts run with these variables alone.
    ...compileCache,
    ...(address === null ? {} : { MUSTER_ADDR: address, MUSTER_TOKEN: fakeToken }),
  };
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const listeners = new Set<() => void>();
  const keyListeners = new Set<(key: string) => void>();
  const terminal: FakeTerminal = {
    columns: options.columns ?? null,
    rows: options.rows ?? 24,
    resizeListeners: new Set(),
  };
  const io: Io = {
    stdout: outputInto(out, terminal),
    stderr: outputInto(err, terminal),
    stdin: {
      isTerminal: terminal.columns !== null && options.stdin === undefined,
      onKeys(listener) {
        keyListeners.add(listener);
        return () => keyListeners.delete(listener);
      },
      async readAll(bytesMax) {
        const bytes = Buffer.from(options.stdin ?? '');
        return bytes.length > bytesMax ? null : bytes;
      },
    },
    onStopRequest(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    supervisor: null,
  };
  const clock: Clock = {
    wallMs: () => options.nowMs ?? submittedAtMs + 60_000,
    monotonicMs: () => performance.now(),
  };
  let requests = 0;
  const context: Context = {
    io,
    environment: { ...readEnvironment(variables, 'muster', home), ...options.environment },
    clock,
    completionWaitMs: patienceMs,
    newRequestId: () => `request-${(requests += 1)}`,
  };
  return {
    context,
    home,
    stdout: () => Buffer.concat(out).toString(),
    stderr: () => stripVTControlCharacters(Buffer.concat(err).toString()),
    stdoutBytes: () => Buffer.concat(out),
    pressCtrlC: () => listeners.forEach((listener) => listener()),
    press: (key) => keyListeners.forEach((listener) => listener(key)),
    resize(columns, rows) {
      Object.assign(terminal, { columns, rows });
      for (const listener of terminal.resizeListeners) listener();
    },
    keyListeners,
  };
}

interface FakeTerminal {
  columns: number | null;
  rows: number;
  readonly resizeListeners: Set<() => void>;
}

function outputInto(chunks: Buffer[], terminal: FakeTerminal): Output {
  return {
    isTerminal: terminal.columns !== null,
    columns: () => terminal.columns,
    rows: () => (terminal.columns === null ? null : terminal.rows),
    onResize(listener) {
      terminal.resizeListeners.add(listener);
      return () => terminal.resizeListeners.delete(listener);
    },
    async write(data) {
      chunks.push(Buffer.from(data));
    },
  };
}

export interface CliResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly requests: FakeCoordinator['requests'];
}

/** Runs one command against a coordinator that answers like this. */
export async function run(
  argv: readonly string[],
  answers: Answers = {},
  options: TestOptions = {},
): Promise<CliResult> {
  const coordinator = await fakeCoordinator(answers);
  const call = newCall(coordinator.address, options);
  const exitCode = await runCli(argv, call.context);
  return { exitCode, stdout: call.stdout(), stderr: call.stderr(), requests: coordinator.requests };
}

export async function fakeCoordinator(answers: Answers, listen?: string): Promise<FakeCoordinator> {
  const coordinator = await startFakeCoordinator(answers, listen);
  onTestFinished(() => coordinator.kill());
  return coordinator;
}

export function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'muster-cli-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Of a terminal without colours, as wide as the text. */
export function aView(given: Partial<View> = {}): View {
  return {
    width: null,
    colours: makeColours(false),
    nowMs: 0,
    unicode: true,
    programName: 'muster',
    ...given,
  };
}
