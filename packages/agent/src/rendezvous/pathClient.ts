/** Asks a peer over its held port, from the node's own address of the gang. */
import { connect, type Socket } from 'node:net';
import { type TaskRef, taskKey } from '@muster/common/ids';
import { type Answer, formatQuestion, parseAnswer, pathLineBytesMax, type Question } from './pathProtocol.ts';

export interface PathEnds {
  /** Node name and address of this side; null: whatever the kernel chooses. */
  readonly from: {
    readonly node: string;
    readonly address: string | null;
    readonly interface: string | null;
  };
  readonly to: { readonly node: string; readonly address: string; readonly port: number };
}

export interface AskOptions {
  /** The peer's task, which is to answer. */
  readonly task: TaskRef;
  /** Node rank of this side. */
  readonly rank: number;
  readonly question: Question;
  /** From the first packet to the answer. */
  readonly deadlineMs: number;
  readonly abort: AbortSignal;
  readonly monotonicMs: () => number;
}

export interface PeerAnswer {
  readonly number: number;
  /** The shorter one of connecting and answering: the other has waited for something else than the network. */
  readonly roundTripMs: number;
  /** From the question to its answer. */
  readonly answeredInMs: number;
}

/** Why a peer could not be asked, in words for people, with both ends. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/** @throws {PathError} also when somebody else answers */
export async function askPeer(ends: PathEnds, options: AskOptions): Promise<PeerAnswer> {
  const { task, rank, question, deadlineMs, monotonicMs } = options;
  const deadline = AbortSignal.any([AbortSignal.timeout(deadlineMs), options.abort]);
  const { promise: line, resolve, reject } = Promise.withResolvers<string>();
  line.catch(() => {});
  const startedMs = monotonicMs();
  let connectedMs: number | null = null;
  const socket = connect({
    host: ends.to.address,
    port: ends.to.port,
    ...(ends.from.address === null ? {} : { localAddress: ends.from.address }),
  });
  // Never ended by us before the answer; after it by us alone, so that no TIME_WAIT is left on the held port.
  const onLate = () => socket.destroy(new Error('late'));
  deadline.addEventListener('abort', onLate, { once: true });
  if (deadline.aborted) onLate();
  try {
    socket.setNoDelay(true);
    socket.on('connect', () => {
      connectedMs = monotonicMs();
      socket.write(formatQuestion({ task, from: rank, question }));
      if (question.kind === 'load') sendLoad(socket, question.bytes);
    });
    readLine(socket, resolve);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed')));
    const answer = parseAnswer(await line);
    const nowMs = monotonicMs();
    requireAnswerOf(task, answer, ends);
    const answeredInMs = nowMs - (connectedMs ?? startedMs);
    const roundTripMs = Math.min((connectedMs ?? nowMs) - startedMs, answeredInMs);
    return { number: answer.number, roundTripMs, answeredInMs };
  } catch (error) {
    if (error instanceof PathError) throw error;
    const why = options.abort.aborted
      ? 'cancelled, because the check is no longer needed'
      : reasonOf(error as NodeJS.ErrnoException, deadlineMs, connectedMs !== null);
    throw new PathError(inWords(ends, why), { cause: error });
  } finally {
    deadline.removeEventListener('abort', onLate);
    socket.on('error', () => {});
    socket.end();
    // With what it has not read yet; a half-open end of ours would stay for minutes where the peer is gone.
    socket.destroySoon();
  }
}

type Here = Extract<Answer, { kind: 'here' }>;

function requireAnswerOf(task: TaskRef, answer: Answer | null, ends: PathEnds): asserts answer is Here {
  if (answer?.kind === 'here' && taskKey(answer.task) === taskKey(task)) return;
  throw new PathError(
    inWords(
      ends,
      answer === null
        ? 'a program other than an agent answers there'
        : `another attempt answers there, not ${taskKey(task)}; two nodes may have this address`,
    ),
  );
}

/** As much as fits at a time: all at once would lie in memory. */
function sendLoad(socket: Socket, bytes: number): void {
  const piece = Buffer.alloc(256 * 1024);
  let left = bytes;
  const send = () => {
    let goesOn = true;
    while (left > 0 && goesOn && !socket.destroyed) {
      const size = Math.min(left, piece.length);
      left -= size;
      goesOn = socket.write(size === piece.length ? piece : piece.subarray(0, size));
    }
    if (left > 0) socket.once('drain', send);
  };
  send();
}

/** @param onLine gets what came before the end of the line, or as much as a line may have */
function readLine(socket: Socket, onLine: (line: string) => void): void {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    const end = text.indexOf('\n');
    if (end !== -1 || text.length > pathLineBytesMax)
      onLine(text.slice(0, end === -1 ? pathLineBytesMax : end));
  });
}

function inWords({ from, to }: PathEnds, why: string): string {
  const host = to.address.includes(':') ? `[${to.address}]` : to.address;
  const via = from.interface === null ? '' : ` (${from.interface})`;
  return `${from.node} cannot reach ${to.node} at ${host}:${to.port}${via}: ${why}`;
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'connection timed out',
  EACCES: 'not permitted by this node, look at its firewall',
  EPERM: 'not permitted by this node, look at its firewall',
};

function reasonOf(error: NodeJS.ErrnoException, deadlineMs: number, connected: boolean): string {
  if (error.message === 'late') {
    const seconds = `within ${deadlineMs / 1_000} s`;
    return connected ? `connected, but no answer ${seconds}` : `no answer ${seconds}; a firewall may drop it`;
  }
  if (error.message === 'closed') return 'connection closed without an answer';
  if (error.code === 'EADDRNOTAVAIL') return 'this node has lost the address chosen for it';
  return reasons[error.code ?? ''] ?? error.message;
}
