import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { addressOfPage, freeAddress } from './cluster.ts';

async function listenOn(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  return (server.address() as { port: number }).port;
}

test('a taken port is replaced, on the same host', async () => {
  const port = await listenOn('127.0.0.1');
  const found = await freeAddress(`127.0.0.1:${port}`);
  expect(found).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
  expect(found).not.toBe(`127.0.0.1:${port}`);
  // Free again, it can be had.
  expect(await freeAddress(found)).toBe(found);
});

test('a page is where it usually is, or elsewhere with a word about it', async () => {
  const printed: string[] = [];
  const options = { what: 'the metrics of node-1', print: (sentence: string) => printed.push(sentence) };
  const free = await freeAddress('127.0.0.1:0');
  expect(await addressOfPage(free, { ...options, anyPort: false })).toBe(free);
  expect(printed).toEqual([]);
  const taken = `127.0.0.1:${await listenOn('127.0.0.1')}`;
  const found = await addressOfPage(taken, { ...options, anyPort: false });
  expect(found).not.toBe(taken);
  expect(printed).toEqual([`${taken} is in use; the metrics of node-1 are at ${found}`]);
  await addressOfPage(taken, { ...options, anyPort: true });
  expect(printed).toHaveLength(1);
});

test('port 0 becomes a port that can be named', async () => {
  expect(await freeAddress('127.0.0.1:0')).toMatch(/:[1-9]\d*$/);
});

test('a host without any free port is left to whoever listens there', async () => {
  expect(await freeAddress('host.invalid:7071')).toBe('host.invalid:7071');
});
