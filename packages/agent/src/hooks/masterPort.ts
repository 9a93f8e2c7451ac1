/**
 * The port that rank 0's rendezvous will listen on: held from preparation to the moment of launch, so that no two jobs
 * get the same one and nothing else on the node takes it in between.
 */
import { createServer, type Server } from 'node:net';

export interface HeldPort {
  readonly port: number;
  /** Frees it for the task. Safe to call twice. */
  release(): Promise<void>;
}

/** @throws {Error} when the node has no free port */
export function holdPort(): Promise<HeldPort> {
  return new Promise((resolve, reject) => {
    // Whoever connects before the launch is a stray; without this it would sit in the backlog.
    const server: Server = createServer((socket) => socket.destroy());
    // For as long as it listens: a connection that cannot be accepted is an error too, and nobody's business.
    server.on('error', reject);
    server.listen({ port: 0, host: '0.0.0.0', exclusive: true }, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') {
        reject(new Error('the held port has no number'));
        return;
      }
      resolve({
        port: address.port,
        release: () => new Promise((released) => server.close(() => released())),
      });
    });
  });
}
