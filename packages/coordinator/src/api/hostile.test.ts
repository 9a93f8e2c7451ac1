/** Clients that send too much, or take nothing. */
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ownTls } from '../../../../test/support/nodeKeys.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { startJob, submitJob } from '../rpc/jobFixture.ts';
import { ask } from './apiFixture.ts';

let coordinator: TestCoordinator;
const sockets: Socket[] = [];
beforeEach(async () => {
  coordinator = await startTestCoordinator({ api: { stallMs: 50, idleMs: 20 } });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await coordinator.close();
});

/** A connection that has sent text. @returns what has been received, once it is read */
function sending(text: string): {
  readonly socket: Socket;
  received(): string;
  readonly closed: Promise<void>;
} {
  const { hostname, port } = new URL(coordinator.apiUrl);
  const socket = createConnection({ host: hostname, port: Number(port) });
  sockets.push(socket);
  socket.on('error', () => {});
  const received: Buffer[] = [];
  socket.on('data', (data) => received.push(data));
  socket.write(text);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  return { socket, received: () => Buffer.concat(received).toString(), closed };
}

const head = (method: string, path: string) =>
  `${method} /api/v1${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${coordinator.adminToken}\r\n`;

test('100 MB of JSON are refused by their length, before they are sent', async () => {
  const { received, closed } = sending(
    `${head('POST', '/jobs')}content-type: application/json\r\ncontent-length: 104857600\r\n\r\n{"name":"`,
  );
  await closed;
  expect(received()).toMatch(/^HTTP\/1\.1 413 /);
  expect(received()).toMatch(/"code":"invalid_argument"/);
});

test('a body without a length is refused where it is too long', async () => {
  const { socket, received } = sending(
    `${head('POST', '/jobs')}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`;
  await vi.waitFor(() => {
    socket.write(piece);
    expect(received()).toMatch(/^HTTP\/1\.1 413 /);
  });
});

test('what is no HTTP is answered with 400, and nobody else notices', async () => {
  const { received, closed } = sending('\x16\x03\x01\x02\x00\x01 nonsense\r\n\r\n');
  await closed;
  expect(received()).toMatch(/^HTTP\/1\.1 400 /);
  expect((await ask(coordinator, 'GET /cluster')).status).toBe(200);
});

test('a client that takes nothing of its stream is cut off, and nobody else notices', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await startJob(coordinator, jobId);
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const mebibyte = Buffer.from(`${'x'.repeat(1_023)}\n`.repeat(1_024));
  // More than the system buffers of a connection hold.
  for (let written = 0; written < 32; written += 1)
    await coordinator.logs.append(task, written * mebibyte.length, mebibyte);
  const { socket, received, closed } = sending(
    `${head('GET', `/jobs/${jobId}/logs/stream?follow=false`)}\r\n`,
  );
  socket.once('data', () => socket.pause());
  await vi.waitFor(() => expect(received()).not.toBe(''));
  await vi.waitFor(() => expect(coordinator.gate.calls.count('admin')).toBe(0));
  expect((await ask(coordinator, 'GET /cluster')).status).toBe(200);
  socket.resume();
  await closed;
  expect(received()).not.toMatch(/event: end/);
});

test('a stream without events says now and then that it is alive', async () => {
  const { received } = sending(`${head('GET', '/events/stream?sinceSeq=-1')}\r\n`);
  await vi.waitFor(() => expect(received()).toMatch(/:\n\n/));
});

test('beyond loopback the API has the TLS of gRPC: version 1.3 and the CA of the cluster', async () => {
  const encrypted = await startTestCoordinator({ tls: ownTls, api: {} });
  try {
    expect(encrypted.apiUrl).toMatch(/^https:/);
    const { port } = new URL(encrypted.apiUrl);
    const connect = (options: object) =>
      new Promise<string>((resolve) => {
        const socket = connectTls({ host: '127.0.0.1', port: Number(port), ...options }, () => {
          resolve(socket.getProtocol() ?? '');
          socket.destroy();
        });
        socket.on('error', (error) => resolve(error.message));
      });
    const ca = encrypted.caCertificate;
    expect(await connect({ ca })).toBe('TLSv1.3');
    expect(await connect({ ca, maxVersion: 'TLSv1.2' })).not.toMatch(/^TLSv/);
    expect(await connect({})).toMatch(/certificate/);
  } finally {
    await encrypted.close();
  }
});
