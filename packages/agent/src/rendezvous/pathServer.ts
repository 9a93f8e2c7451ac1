/**
 * Answers peers on a held port. Anybody on the network can connect to it, so all of it is bounded: the number of
 * connections, their bytes, their time; and only who names this very attempt gets a yes.
 *
 * The side that ends a TCP connection first keeps its port in TIME_WAIT for a minute, in which a program that does not ask
 * for SO_REUSEADDR could not listen on it. So the peer ends it, and a peer that does not is reset.
 */
import { createServer, type Server, type Socket } from 'node:net';
import type { TaskRef } from '@muster/common/ids';
import { type Answer, type Asked, formatAnswer, parseQuestion, pathLineBytesMax } from './pathProtocol.ts';

/** A gang of 1,024 nodes tries its paths to rank 0 at the same moment. */
const connectionsMax = 2_048;
/** Of one address, so that one unknown client cannot keep all peers out. On one machine all nodes have the same address. */
const connectionsPerAddressMax = 256;
/** Measurements disturb each other, and each may take the link for seconds. */
const loadsMax = 2;

export interface PathServerOptions {
  readonly task: TaskRef;
  /** The port that the preflight meets at. */
  readonly preflightPort: () => Promise<number>;
  /** From the connection to its question. */
  readonly questionDeadlineMs?: number;
  /** From the question to the end of the connection. */
  readonly answerDeadlineMs?: number;
}

export class PathServer {
  private readonly options: PathServerOptions;
  private readonly server: Server;
  private readonly sockets = new Map<Socket, string>();
  private loads = 0;

  constructor(options: PathServerOptions) {
    this.options = options;
    this.server = createServer((socket) => this.accept(socket));
    // After it listens: a connection that could not be accepted is the peer's to notice.
    this.server.on('error', () => {});
  }

  /** On every address of this node. @returns false: somebody has this port */
  listen(port: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
        else reject(error);
      };
      this.server.once('error', onError);
      // Without a host: IPv6 and IPv4, or IPv4 where the kernel has no other.
      this.server.listen({ port, backlog: 1_024, exclusive: true }, () => {
        this.server.off('error', onError);
        resolve(true);
      });
    });
  }

  /** The port is free once this resolves, without a trace of the connections it had. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.server.close(() => resolve()));
    for (const socket of this.sockets.keys()) socket.resetAndDestroy();
    await closed;
  }

  private accept(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const ofAddress = [...this.sockets.values()].filter((each) => each === address).length;
    socket.on('error', () => {});
    if (this.sockets.size >= connectionsMax || ofAddress >= connectionsPerAddressMax) {
      socket.resetAndDestroy();
      return;
    }
    this.sockets.set(socket, address);
    const { questionDeadlineMs = 5_000, answerDeadlineMs = 30_000 } = this.options;
    let deadline = setTimeout(() => socket.resetAndDestroy(), questionDeadlineMs);
    socket.on('close', () => {
      clearTimeout(deadline);
      this.sockets.delete(socket);
    });

    let begin = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      begin = Buffer.concat([begin, chunk]);
      const end = begin.indexOf('\n');
      const line = begin.toString('latin1', 0, end === -1 ? begin.length : end);
      const asked = end === -1 || end > pathLineBytesMax ? null : parseQuestion(line);
      if (asked === null && end === -1 && begin.length <= pathLineBytesMax) return;
      socket.off('data', onData);
      if (asked === null) {
        socket.resetAndDestroy();
        return;
      }
      clearTimeout(deadline);
      deadline = setTimeout(() => socket.resetAndDestroy(), answerDeadlineMs);
      void this.answer(socket, asked, begin.subarray(end + 1));
    };
    socket.on('data', onData);
  }

  private async answer(socket: Socket, asked: Asked, rest: Buffer): Promise<void> {
    const { task, preflightPort } = this.options;
    const isPeer =
      asked.task.jobId === task.jobId &&
      asked.task.attempt === task.attempt &&
      asked.task.nodeRank === task.nodeRank &&
      asked.from !== task.nodeRank;
    if (!isPeer) {
      this.send(socket, { kind: 'not_a_peer' });
      return;
    }
    try {
      const number = asked.question.kind === 'preflight' ? await preflightPort() : 0;
      if (asked.question.kind === 'load') this.takeLoad(socket, asked.question.bytes, rest.length);
      else this.send(socket, { kind: 'here', task, number });
    } catch {
      socket.resetAndDestroy();
    }
  }

  private takeLoad(socket: Socket, bytes: number, already: number): void {
    if (this.loads >= loadsMax) {
      socket.resetAndDestroy();
      return;
    }
    this.loads += 1;
    socket.on('close', () => {
      this.loads -= 1;
    });
    let received = already;
    const take = (count: number) => {
      received += count;
      if (received < bytes) return;
      socket.off('data', onData);
      if (received > bytes) socket.resetAndDestroy();
      else this.send(socket, { kind: 'here', task: this.options.task, number: bytes });
    };
    const onData = (chunk: Buffer) => take(chunk.length);
    socket.on('data', onData);
    take(0);
  }

  /** The peer ends the connection; what it still sends is ignored, and bounded by the deadline. */
  private send(socket: Socket, answer: Answer): void {
    socket.write(formatAnswer(answer));
    socket.on('data', () => socket.resetAndDestroy());
  }
}
