/**
 * The reader: a process of its own that holds NVML's library, because a call in it can hang for ever or crash, and either
 * would take the agent along. It reads when it is asked to, and is killed when it does not answer.
 *
 *     nvmlReader LIBRARY [--gpm]
 */
import { accessSync, read, writeSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { LineSplitter } from '@muster/common/lineSplitter';
import { kernelHelp, openLibrary } from './library.ts';
import { none, type ReaderMessage, type ReaderRequest, readerLineLengthMax } from './protocol.ts';
import { NvmlSession } from './session.ts';

const stdin = 0;
const stdout = 1;

function send(message: ReaderMessage): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let written = 0; written < bytes.length; ) written += writeSync(stdout, bytes, written);
}

/** At once: `process.exit` would wait for a call that hangs on another thread. */
function die(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('still alive after SIGKILL');
}

function processExists(pid: number): boolean {
  try {
    accessSync(`/proc/${pid}`);
    return true;
  } catch {
    return false;
  }
}

function answer(session: NvmlSession, { id, kind, avoid }: ReaderRequest): ReaderMessage {
  const cards = new Set(avoid);
  return kind === 'list'
    ? { kind: 'listed', id, listing: session.list(cards) }
    : { kind: 'sampled', id, sampling: session.sample(cards) };
}

function main(): void {
  const [nameOrPath = '', ...flags] = process.argv.slice(2);
  const kernel = kernelHelp();
  kernel.dieWithParent();
  const trace = kernel.tracePage();
  const page = trace?.page ?? new Int32Array(2);
  page.fill(none);
  send({ kind: 'started', traceFd: trace?.fd ?? null });

  let library: ReturnType<typeof openLibrary>;
  try {
    library = openLibrary(nameOrPath, page);
  } catch (error) {
    send({ kind: 'unavailable', reason: messageOf(error) });
    die();
  }
  send({ kind: 'opened', missing: library.missing });
  const session = new NvmlSession({
    library,
    gpm: flags.includes('--gpm'),
    monotonicMs: () => performance.now(),
    processExists,
    onXid: (event) => send({ kind: 'xid', event }),
  });

  // Read by hand: Node's streams would cost megabytes of memory and time at each request.
  const input = Buffer.alloc(4096);
  const lines = new LineSplitter(readerLineLengthMax);
  const readOn = () =>
    read(stdin, input, 0, input.length, null, (error, bytes) => {
      // The agent is gone.
      if (error !== null || bytes === 0) die();
      for (const line of lines.push(input.toString('utf8', 0, bytes))) {
        const message = answer(session, JSON.parse(line) as ReaderRequest);
        library.setIdle();
        send(message);
      }
      readOn();
    });
  readOn();
}

main();
