import { chmodSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { messageOf } from '@muster/common/errors';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import {
  type GuardFailure,
  type GuardMethod,
  type GuardMethods,
  type GuardRequest,
  guardProtocol,
  readLines,
  writeLine,
} from './protocol.ts';

export type GuardHandlers = {
  readonly [M in GuardMethod]: (params: GuardMethods[M]['params']) => Promise<GuardMethods[M]['result']>;
};

export interface GuardServer {
  readonly clientCount: number;
  /** Whether the socket's path still leads here; false once the runtime directory was removed or replaced. */
  isReachable(): boolean;
  close(): void;
}

/** @param path must belong to us alone (see `takeLock`): what is left there from an earlier guard is removed */
export async function serve(path: string, handlers: GuardHandlers): Promise<GuardServer> {
  rmSync(path, { force: true });
  const clients = new Set<Socket>();
  const server = createServer((socket) => {
    clients.add(socket);
    socket.on('close', () => clients.delete(socket));
    // An agent that was killed: nothing of its tasks depends on the connection.
    socket.on('error', () => socket.destroy());
    writeLine(socket, { guard: 'muster', protocol: guardProtocol, pid: process.pid });
    readLines(socket, (line) => void answer(socket, line, handlers));
  });
  await listen(server, path);
  chmodSync(path, 0o600);
  const own = statSync(path);
  return {
    get clientCount() {
      return clients.size;
    },
    isReachable() {
      const present = statSync(path, { throwIfNoEntry: false });
      // File systems give inode numbers out again; with the time of its making a socket is this one and no other.
      return present?.ino === own.ino && present.mtimeMs === own.mtimeMs;
    },
    close() {
      server.close();
      for (const socket of clients) socket.destroy();
    },
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
}

async function answer(socket: Socket, line: string, handlers: GuardHandlers): Promise<void> {
  let request: GuardRequest;
  try {
    request = JSON.parse(line) as GuardRequest;
  } catch {
    socket.destroy();
    return;
  }
  const { id, method, params } = request;
  try {
    if (!Object.hasOwn(handlers, method)) {
      throw new Error(`this guard does not know "${method}": stop the node's tasks and start a newer guard`);
    }
    const handler = handlers[method] as (params: unknown) => Promise<unknown>;
    const result = await handler(params);
    if (socket.writable) writeLine(socket, { id, result });
  } catch (error) {
    if (socket.writable) writeLine(socket, { id, error: asFailure(error) });
  }
}

function asFailure(error: unknown): GuardFailure {
  const failure = {
    causeKind: error instanceof DriverError ? error.causeKind : null,
    message: messageOf(error),
  };
  return error instanceof LeaseExpired ? { ...failure, leaseExpired: true } : failure;
}
