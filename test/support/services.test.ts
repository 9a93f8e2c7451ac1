import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePort, isStaticallyLinked, startNats, staticBusybox, tempDir, waitFor } from './services.ts';

test('waitFor returns what it waited for', async () => {
  let count = 0;
  const seen = await waitFor('third look', () => ++count, { intervalMs: 1, until: (value) => value === 3 });
  expect(seen).toBe(3);
});

test('waitFor reports the last state it saw', async () => {
  const waiting = waitFor('job runs', () => ({ state: 'queued' }), { timeoutMs: 5, until: () => false });
  await expect(waiting).rejects.toThrow("job runs: not within 5 ms; last seen: { state: 'queued' }");
});

test('waitFor reports the last error of its probe', async () => {
  const failing = () => {
    throw new Error('connection refused');
  };
  await expect(waitFor('ready', failing, { timeoutMs: 5 })).rejects.toThrow(
    'last seen: error: connection refused',
  );
});

test('a temporary folder is removed with what is in it', async () => {
  const folder = tempDir();
  writeFileSync(join(folder.path, 'file'), 'text');
  await folder.remove();
  expect(existsSync(folder.path)).toBe(false);
});

test('busybox is static, Node is not', () => {
  expect(isStaticallyLinked(readFileSync(staticBusybox()))).toBe(true);
  expect(isStaticallyLinked(readFileSync(process.execPath))).toBe(false);
  expect(isStaticallyLinked(Buffer.from('#!/bin/sh\n'))).toBe(false);
});

test('nats-server keeps its address over a kill and a restart', async () => {
  const nats = await startNats({ storeDir: tempDir('nats').path, port: await freePort() });
  expect(await greeting(nats.url)).toContain('"jetstream":true');
  await nats.kill('SIGKILL');
  await expect(greeting(nats.url)).rejects.toThrow('ECONNREFUSED');
  await nats.restart();
  expect(await greeting(nats.url)).toContain('"jetstream":true');
  await nats.stop();
  await expect(greeting(nats.url)).rejects.toThrow('ECONNREFUSED');
});

/** The line with which a NATS server greets every client. */
function greeting(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.once('error', reject);
    socket.once('data', (chunk) => {
      socket.destroy();
      resolve(chunk.toString());
    });
  });
}
