/**
 * Accepts the connections of the gRPC server. grpc-js could listen itself, but does not report a connection before its
 * first call, so that unauthenticated ones could not be counted.
 */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net';
import type { Address } from '@muster/common/address';

export interface Listeners {
  readonly port: number;
  /** Accepts no more connections; those that are open stay open. */
  close(): void;
}

/**
 * Listens on every address of the host: `localhost` has two on most machines.
 * @param onConnection gets each socket before anything is read from it
 * @throws {Error} of Node, with its code, when none of them can be listened on
 */
export async function listenOn(
  { host, port }: Address,
  onConnection: (socket: Socket) => void,
): Promise<Listeners> {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const addresses =
    isIP(bare) === 0 ? (await lookup(bare, { all: true })).map(({ address }) => address) : [bare];
  const servers: Server[] = [];
  let bound = port;
  let failure = new Error(`${host} has no address`);
  for (const address of new Set(addresses)) {
    try {
      const server = await listen(address, bound, onConnection);
      bound = (server.address() as AddressInfo).port;
      servers.push(server);
    } catch (error) {
      // A machine without IPv6 still has its address in the names of hosts.
      if (!isMissingAddress(error)) {
        for (const server of servers) server.close();
        throw error;
      }
      failure = new Error(`${address} is not an address of this machine`, { cause: error });
    }
  }
  if (servers.length === 0) throw failure;
  return {
    port: bound,
    close: () => {
      for (const server of servers) server.close();
    },
  };
}

async function listen(host: string, port: number, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ noDelay: true }, onConnection);
  server.listen({ host, port });
  await once(server, 'listening');
  // Without a free descriptor nothing can be accepted for a while; open connections stay open.
  server.on('error', () => {});
  return server;
}

function isMissingAddress(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
}
