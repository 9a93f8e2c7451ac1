/** A notification, and a server that records what it gets. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { someMs } from '../modelFixture.ts';
import { authorityCertificate, serverCertificate } from '../tls/certificate.ts';
import type { AlertNotification } from './notification.ts';

export function aNotification(fields: Partial<AlertNotification> = {}): AlertNotification {
  return {
    id: 'c0ffee-7',
    status: 'firing',
    isReminder: false,
    alert: 'failed',
    severity: 'critical',
    message: 'train has failed: cuda_oom',
    kind: 'job',
    subject: 'job_00000000000b',
    subjectName: 'train',
    project: 'vision',
    labels: { team: 'vision' },
    owner: 'ann',
    episode: 'failed-7',
    firedAtMs: someMs,
    atMs: someMs,
    ...fields,
  };
}

export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface TestCertificate {
  /** PEM, as are the others. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Of a CA of its own. @param host a name or an address */
export async function aServerCertificate(host: string): Promise<TestCertificate> {
  const validity = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const keys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const authority = keys().privateKey;
  const ca = await authorityCertificate({
    ...validity,
    name: 'a CA of tests',
    privateKey: authority,
    serial: new Uint8Array(16).fill(1),
  });
  const { publicKey, privateKey } = keys();
  const request = { ...validity, name: host, publicKey, hosts: [host], serial: new Uint8Array(16).fill(2) };
  const cert = await serverCertificate(request, { certificate: ca, privateKey: authority });
  return { ca, cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/**
 * @param answer for each request; one that does not answer keeps the caller waiting
 * @param tls null: without
 */
export async function startReceiver(
  answer: (response: ServerResponse, count: number) => void = (response) => response.end(),
  tls: TestCertificate | null = null,
): Promise<{ readonly url: string; readonly requests: readonly RecordedRequest[] }> {
  const requests: RecordedRequest[] = [];
  const take: RequestListener = (request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      answer(response, requests.length);
    });
  };
  const server = tls === null ? createServer(take) : createTlsServer(tls, take);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http${tls === null ? '' : 's'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
  };
}
