/** Where the daemons of a test live: ports that stay theirs, disks that are full when the test fills them. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Daemon } from './daemon.ts';
import { waitFor } from './services.ts';

/**
 * A port that is free and that the kernel gives to nobody who asks for any: a coordinator comes back to the same port
 * after it was killed, while clients, agents and jobs are taking ports all the time. (A client that dials a port of that
 * range on which nobody listens can even be given this very port and so meet itself.)
 */
export async function stablePort(): Promise<number> {
  const [lowest = 32_768] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    .split('\t')
    .map(Number);
  return waitFor('a free port', async () => {
    const port = 1_024 + Math.floor(Math.random() * (lowest - 1_024));
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host: '127.0.0.1', exclusive: true }, resolve);
    });
    await new Promise((resolve) => server.close(resolve));
    return port;
  });
}

/**
 * Makes a path a file system in memory, in a mount namespace of the process: nobody else sees it, and nobody has to take
 * it away.
 * @returns argv to put before that of the process; empty without a size
 */
export function withOwnDisk(path: string, sizeMb: number | undefined): readonly string[] {
  if (sizeMb === undefined) return [];
  const script = `mkdir -p ${path} && mount -t tmpfs -o size=${sizeMb}m,mode=700 tmpfs ${path} && exec "$@"`;
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  return ['unshare', '--mount', ...asRoot, 'sh', '-c', script, 'sh'];
}

/** A path in the mount namespace of a running process. */
export function asSeenBy(daemon: Daemon, path: string): string {
  return join(`/proc/${daemon.pid}/root`, path);
}
