import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { bareGpu, type Gpu } from '@muster/common/hardware';
import { expect, onTestFinished, test, vi } from 'vitest';
import { emptyActivity } from '../gpuSource.ts';
import { createDcgmExporterSource } from './exporterSource.ts';

const card = 'GPU-10000000-aaaa-bbbb-cccc-000000000001';
const page = `DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="${card}"} 0.5\n`;

/** A source that asks a server which answers as the test says. */
async function exporter(
  respond: (answer: ServerResponse, request: IncomingMessage) => void,
  { devices = [bareGpu(card)], timeoutMs = 10_000 }: { devices?: readonly Gpu[]; timeoutMs?: number } = {},
) {
  const sockets = new Set<Socket>();
  const server = createServer((request, answer) => respond(answer, request));
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/metrics`;
  const source = createDcgmExporterSource({ url, timeoutMs, devices: () => devices });
  onTestFinished(async () => {
    await source.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { source, url, sockets, server };
}

test('values are those of the page, over one connection that is kept', async () => {
  const paths: (string | undefined)[] = [];
  const { source, sockets } = await exporter((answer, { url }) => {
    paths.push(url);
    answer.end(page);
  });
  const values = new Map([[card, { ...emptyActivity, smActive: 0.5 }]]);
  expect(await source.sample()).toEqual(values);
  expect(await source.sample()).toEqual(values);
  expect(paths).toEqual(['/metrics', '/metrics']);
  expect(sockets.size).toBe(1);
});

test('samples that are asked for together are one request', async () => {
  let requests = 0;
  const { source } = await exporter((answer) => {
    requests += 1;
    answer.end(page);
  });
  const [one, other] = await Promise.all([source.sample(), source.sample()]);
  expect(one).toBe(other);
  expect(requests).toBe(1);
});

test('instances get their values by card and number, unless several share one', async () => {
  const instance = (uuid: string, gpuInstanceId: number, computeInstanceId: number): Gpu => ({
    ...bareGpu(uuid),
    mig: { parentUuid: card, profile: '1g.10gb', gpuInstanceId, computeInstanceId },
  });
  const devices = [instance('MIG-a', 7, 0), instance('MIG-b', 8, 0), instance('MIG-c', 8, 1)];
  const line = (id: number) => `DCGM_FI_PROF_SM_ACTIVE{UUID="${card}",GPU_I_ID="${id}"} 0.5\n`;
  const { source } = await exporter((answer) => answer.end([7, 8, 9].map(line).join('')), { devices });
  expect([...(await source.sample()).keys()]).toEqual(['MIG-a']);
});

test('an exporter that accepts and never answers is late, and is asked again the next time', async () => {
  let hangs = true;
  const { source, url } = await exporter((answer) => void (hangs || answer.end(page)), { timeoutMs: 100 });
  await expect(source.sample()).rejects.toThrow(`dcgm-exporter at ${url} did not answer within 100 ms`);
  hangs = false;
  // A busy machine may be late a few times more.
  await vi.waitFor(async () => expect((await source.sample()).size).toBe(1));
});

test('an exporter that stops in the middle of its page is late', async () => {
  const { source } = await exporter((answer) => void answer.write(page), { timeoutMs: 100 });
  await expect(source.sample()).rejects.toThrow('did not answer within 100 ms');
});

test('a page of 10 MB is not read to its end', async () => {
  const part = Buffer.alloc(64 * 1024, 'x');
  let sent = 0;
  const { source } = await exporter((answer) => {
    const parts = (function* () {
      for (; sent < 160; sent += 1) yield part;
    })();
    Readable.from(parts).pipe(answer);
  });
  await expect(source.sample()).rejects.toThrow('sent more than 4194304 bytes');
  expect(sent).toBeLessThan(160);
});

test.each([
  ['garbage', Buffer.from([0, 255, 254, 1, 2, 3, 10, 13, 0]), 'answered with something other than metrics'],
  ['a page of another program', 'go_goroutines 12\n', 'has no DCGM_FI_PROF_ series'],
  ['nothing', '', 'answered with something other than metrics'],
])('%s is no sample', async (_, body, message) => {
  const { source } = await exporter((answer) => answer.end(body));
  await expect(source.sample()).rejects.toThrow(message);
});

test('an error status is reported, and a redirect is not followed', async () => {
  const { source } = await exporter((answer, { url }) => {
    if (url === '/metrics') answer.writeHead(302, { location: '/elsewhere' }).end();
    else answer.end(page);
  });
  await expect(source.sample()).rejects.toThrow('answered with status 302');
});

test('an exporter that is not there is reported in one sentence', async () => {
  const { source, server, url } = await exporter(() => {});
  await new Promise((resolve) => server.close(resolve));
  await expect(source.sample()).rejects.toThrow(`dcgm-exporter at ${url} is not running`);
});

test('closing ends a request that is under way', async () => {
  const asked = Promise.withResolvers<void>();
  const { source } = await exporter(() => asked.resolve());
  const sample = source.sample();
  sample.catch(() => {});
  await asked.promise;
  await source.close();
  await expect(sample).rejects.toThrow('cannot be read');
});

test.each(['', 'dcgm:9400', 'https://127.0.0.1:9400/metrics', 'file:///etc/passwd'])(
  'a URL that cannot be meant is refused: %j',
  (url) => {
    expect(() => createDcgmExporterSource({ url, devices: () => [] })).toThrow(
      'write one like http://127.0.0.1',
    );
  },
);
