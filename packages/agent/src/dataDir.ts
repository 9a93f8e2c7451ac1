/** The directory that holds all an agent remembers: its credential, its tasks, the highest term it has followed. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';

/** @throws {MusterError} when it cannot be made */
export function prepareDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new MusterError(
      'permission_denied',
      `the data directory ${dataDir} cannot be made: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

/**
 * One agent per data directory: an abstract socket is freed by the kernel whenever and however its holder ends. Its name
 * is a digest, because names of sockets are short and paths are not.
 */
export function lockDataDir(dataDir: string): Promise<Server> {
  const digest = createHash('sha256').update(realpathSync(dataDir)).digest('hex');
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.unref();
    server.on('error', (error) => {
      const isTaken = 'code' in error && error.code === 'EADDRINUSE';
      const message = isTaken
        ? `another agent is using ${dataDir}; stop it, or use another --data`
        : `the data directory ${dataDir} cannot be locked: ${error.message}`;
      reject(new MusterError('failed_precondition', message, { cause: error }));
    });
    server.listen(`\0muster-agent:${digest}`, () => resolve(server));
  });
}

/**
 * Made with the data directory: tells two machines with the same credential apart.
 * @param newId random
 */
export function readInstanceId(dataDir: string, newId: () => string): string {
  const path = join(dataDir, 'instance');
  if (!existsSync(path)) writeFileDurably(path, `${newId()}\n`, 0o600);
  return readFileSync(path, 'utf8').trim();
}
