/** One connection to a guard: requests out, responses back by id. Knows nothing of starting guards or trying again. */
import { connect, type Socket } from 'node:net';
import {
  type GuardFailure,
  type GuardHello,
  type GuardMethod,
  type GuardMethods,
  type GuardResponse,
  guardProtocol,
  readLines,
  writeLine,
} from '../../guard/protocol.ts';

/** The guard refused the request. */
export class GuardRefusal extends Error {
  override readonly name = 'GuardRefusal';
  /** See `GuardFailure`. */
  readonly causeKind: string | null;
  readonly leaseExpired: boolean;

  constructor(failure: GuardFailure) {
    super(failure.message);
    this.causeKind = failure.causeKind;
    this.leaseExpired = failure.leaseExpired === true;
  }
}

/** The connection broke; whether the request arrived is not known. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  /** True if somebody accepted the connection and did not greet in time. */
  readonly isSilent: boolean;

  constructor(message: string, options?: ErrorOptions & { readonly isSilent?: boolean }) {
    super(message, options);
    this.isSilent = options?.isSilent === true;
  }
}

/** What speaks at the other end is no guard of ours, or one too old or new. Trying again is useless. */
export class GuardMismatch extends Error {
  override readonly name = 'GuardMismatch';
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export class GuardConnection {
  /** Pid of the guard. */
  readonly pid: number;
  private readonly socket: Socket;
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private lost: Error | null = null;

  /**
   * Resolves once the guard has greeted; the kernel connects us even to one that is stopped.
   * @throws {ConnectionLost} nobody listens or greets there, with the socket's error as cause
   * @throws {GuardMismatch} it speaks another protocol
   */
  static open(path: string, timeoutMs: number): Promise<GuardConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      let isSilent = false;
      const timer = setTimeout(() => {
        isSilent = true;
        socket.destroy(new Error(`no greeting within ${timeoutMs} ms`));
      }, timeoutMs);
      let connection: GuardConnection | null = null;
      let failure: unknown = null;
      socket.on('error', (error: NodeJS.ErrnoException) => {
        failure = error;
        // The queue of connections is full, because nobody accepts them.
        isSilent ||= error.code === 'EAGAIN';
      });
      socket.on('close', () => {
        clearTimeout(timer);
        const lost = new ConnectionLost(`no connection to the guard at ${path}`, {
          cause: failure,
          isSilent,
        });
        if (connection !== null) connection.lose(lost);
        reject(failure instanceof GuardMismatch ? failure : lost);
      });
      readLines(socket, (line) => {
        try {
          if (connection === null) {
            connection = new GuardConnection(socket, checkHello(line, path).pid);
            clearTimeout(timer);
            resolve(connection);
          } else connection.receive(JSON.parse(line) as GuardResponse);
        } catch (error) {
          failure = error;
          socket.destroy();
        }
      });
    });
  }

  private constructor(socket: Socket, pid: number) {
    this.socket = socket;
    this.pid = pid;
  }

  get isOpen(): boolean {
    return this.lost === null;
  }

  /** @throws {GuardRefusal | ConnectionLost} */
  request<M extends GuardMethod>(
    method: M,
    params: GuardMethods[M]['params'],
  ): Promise<GuardMethods[M]['result']> {
    if (this.lost !== null) return Promise.reject(this.lost);
    const id = this.nextId++;
    const answer = new Promise<unknown>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    writeLine(this.socket, { id, method, params });
    return answer as Promise<GuardMethods[M]['result']>;
  }

  close(): void {
    this.lose(new ConnectionLost('the connection to the guard was closed'));
    this.socket.destroy();
  }

  private receive(response: GuardResponse): void {
    const waiting = this.waiting.get(response.id);
    this.waiting.delete(response.id);
    if ('error' in response) waiting?.reject(new GuardRefusal(response.error));
    else waiting?.resolve(response.result);
  }

  private lose(error: Error): void {
    this.lost ??= error;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}

/** @throws {GuardMismatch} */
function checkHello(line: string, path: string): GuardHello {
  const hello = parseHello(line);
  if (hello?.guard !== 'muster') throw new GuardMismatch(`what listens at ${path} is not a Muster guard`);
  if (hello.protocol === guardProtocol)
    return { guard: 'muster', protocol: guardProtocol, pid: Number(hello.pid) };
  throw new GuardMismatch(
    `the guard at ${path} (pid ${hello.pid}) uses protocol ${hello.protocol} and this agent ${guardProtocol}: ` +
      'let its tasks end, stop it, and start the agent again',
  );
}

function parseHello(line: string): Partial<GuardHello> | null {
  try {
    return JSON.parse(line) as Partial<GuardHello> | null;
  } catch {
    return null;
  }
}
