/** A notification, and a server that records what it gets. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { someMs } from '../modelFixture.ts';
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

/** @param answer for each request; one that does not answer keeps the caller waiting */
export async function startReceiver(
  answer: (response: ServerResponse, count: number) => void = (response) => response.end(),
): Promise<{ readonly url: string; readonly requests: readonly RecordedRequest[] }> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      answer(response, requests.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
