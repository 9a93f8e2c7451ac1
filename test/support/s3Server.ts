/** An S3-compatible server on loopback: s3rver checks signatures, and keeps objects as files. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from '@20minutes/s3rver';

export const s3Bucket = 'artifacts';
/** As the value of a secret. The server knows this key alone. */
export const s3Key = 'S3RVER:S3RVER';

export interface S3Server {
  readonly endpoint: string;
  /** How many requests of a method have come, such as `PUT`. */
  count(method: string): number;
  /** What happens to a request: `drop` ends its connection, and `lose` does so once it has been served, without an answer. */
  intercept(act: ((method: string, url: string) => 'serve' | 'drop' | 'lose') | null): void;
  close(): Promise<void>;
}

/** Keeps objects in a directory of its own, which is removed at the end. */
export async function startS3Server(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 's3-'));
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: s3Bucket }],
  });
  const address = await server.run();
  const counts = new Map<string, number>();
  let intercepted: Parameters<S3Server['intercept']>[0] = null;
  const [serve] = server.httpServer.listeners('request') as ((...of: unknown[]) => void)[];
  server.httpServer.removeAllListeners('request');
  server.httpServer.on('request', (request, response) => {
    const { method = '', url = '' } = request;
    counts.set(method, (counts.get(method) ?? 0) + 1);
    const what = intercepted?.(method, url) ?? 'serve';
    if (what === 'drop') request.socket.destroy();
    if (what === 'lose') {
      response.write = () => true;
      response.end = () => {
        request.socket.destroy();
        return response;
      };
    }
    if (what !== 'drop') serve?.(request, response);
  });
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    count: (method) => counts.get(method) ?? 0,
    intercept(act) {
      intercepted = act;
    },
    async close() {
      server.httpServer.closeAllConnections();
      await server.close();
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
