/** Servers with certificates of any kind, good and bad, as a coordinator or an impostor would have them. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer, type SecureContextOptions } from 'node:tls';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import {
  authorityCertificate,
  nodeCertificate,
  serverCertificate,
} from '@muster/coordinator/tls/certificate';
import { onTestFinished } from 'vitest';

const dayMs = 24 * 60 * 60_000;

export interface TestAuthority {
  /** PEM. */
  readonly certificate: string;
  /** Key and chain of a server of its; by default good for 127.0.0.1 and localhost, now. */
  issue(options?: ServerOptions): Promise<SecureContextOptions>;
  /** @param key PEM @returns the certificate of a node, PEM, good from now for `lifetimeMs` */
  certify(key: string, name: string, lifetimeMs?: number): Promise<string>;
}

export interface ServerOptions {
  readonly hosts?: readonly string[];
  /** In relation to now. */
  readonly validMs?: readonly [number, number];
  /** Default 1.3, as coordinators have it. */
  readonly version?: 'TLSv1.2' | 'TLSv1.3';
  /** Leave out the CA's own certificate. */
  readonly leafOnly?: boolean;
}

export async function testAuthority(): Promise<TestAuthority> {
  const { privateKey: authorityKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const nowMs = Date.now();
  const certificate = await authorityCertificate({
    name: 'CA of a test',
    privateKey: authorityKey,
    serial: randomBytes(16),
    notBeforeMs: nowMs - dayMs,
    notAfterMs: nowMs + dayMs,
  });
  return {
    certificate,
    certify(key, name, lifetimeMs = dayMs) {
      const publicKey = createPublicKey(createPrivateKey(key));
      const validity = { notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + lifetimeMs };
      const request = { name, publicKey, serial: randomBytes(16), ...validity };
      return nodeCertificate(request, { certificate, privateKey: authorityKey });
    },
    async issue({ hosts = ['127.0.0.1', 'localhost'], validMs = [-dayMs, dayMs], ...options } = {}) {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const [fromMs, toMs] = validMs;
      const validity = { notBeforeMs: nowMs + fromMs, notAfterMs: nowMs + toMs };
      const request = { name: 'server of a test', publicKey, hosts, serial: randomBytes(16), ...validity };
      const leaf = await serverCertificate(request, { certificate, privateKey: authorityKey });
      const version = options.version ?? 'TLSv1.3';
      return {
        cert: options.leafOnly === true ? leaf : leaf + certificate,
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
        minVersion: version,
        maxVersion: version,
      };
    },
  };
}

class TestCredentials extends ServerCredentials {
  constructor(context: SecureContextOptions) {
    super(context, context);
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

/** @param context null: without TLS @returns the port on 127.0.0.1 of a gRPC server without services */
export async function startGrpcServer(context: SecureContextOptions | null): Promise<number> {
  const server = new Server();
  const credentials = context === null ? ServerCredentials.createInsecure() : new TestCredentials(context);
  onTestFinished(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}

export interface Listener {
  readonly port: number;
  /** All that the first client said after the handshake, once it has hung up. */
  readonly received: Promise<string>;
}

/** A TLS server that listens and says nothing. */
export async function startListener(context: SecureContextOptions): Promise<Listener> {
  const received = Promise.withResolvers<string>();
  let text = '';
  const server = createServer({ ...context, ALPNProtocols: ['h2'] }, (socket) => {
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
    });
    socket.on('error', () => {});
  });
  server.on('connection', (socket) => socket.on('close', () => received.resolve(text)));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the listener has no port');
  return { port: address.port, received: received.promise };
}
