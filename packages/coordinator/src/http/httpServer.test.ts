import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { MusterError } from '@muster/common/errors';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeNameOf } from '../modelFixture.ts';
import { type RunningHttpServer, startHttpServer } from './httpServer.ts';

let server: RunningHttpServer;
let nodePage: () => Promise<string>;
const parts = {
  ownPage: async () => 'muster_up 1\n',
  nodePage: () => nodePage(),
  nodes: () => ['node-1', 'node-2'].map(nodeNameOf),
  log: silentLogger,
};
beforeEach(async () => {
  nodePage = async () => 'node_up 1\n';
  server = await startHttpServer('127.0.0.1:0', parts);
});
afterEach(() => server.close());

function ask(path: string, { method = 'GET', host = server.address } = {}) {
  return new Promise<{ status: number | undefined; body: string; type: string | undefined }>(
    (resolve, reject) => {
      const [, port] = server.address.split(':');
      const options = { host: '127.0.0.1', port, path, method, headers: { host }, agent: false };
      const call = request(options, (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (text: string) => (body += text));
        answer.on('end', () => {
          resolve({ status: answer.statusCode, body, type: answer.headers['content-type'] });
        });
      });
      call.once('error', reject).end();
    },
  );
}

test('pages, health and discovery are served, and nothing else', async () => {
  expect(await ask('/metrics')).toMatchObject({ status: 200, body: 'muster_up 1\n' });
  expect((await ask('/metrics')).type).toContain('version=0.0.4');
  expect(await ask('/metrics', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
  expect(await ask('/nodes/node-1/metrics?format=prometheus')).toMatchObject({ body: 'node_up 1\n' });
  expect(await ask('/healthz')).toMatchObject({ status: 200, body: 'ok\n' });
  for (const path of [
    '/',
    '/nodes',
    '/nodes/node-9/metrics',
    '/nodes/../metrics',
    '/nodes/a%2fb/metrics',
    '/sd/',
  ])
    expect(await ask(path)).toMatchObject({ status: 404 });
  expect(await ask('/metrics', { method: 'POST' })).toMatchObject({ status: 405 });
});

test('discovery lists the coordinator and every node under the address that was asked', async () => {
  const own = await ask('/sd');
  expect(own.type).toBe('application/json');
  expect(JSON.parse(own.body)).toEqual([
    { targets: [server.address], labels: { __metrics_path__: '/metrics', muster_role: 'coordinator' } },
    ...['node-1', 'node-2'].map((node) => ({
      targets: [server.address],
      labels: { __metrics_path__: `/nodes/${node}/metrics`, instance: node, node, muster_role: 'agent' },
    })),
  ]);
  const tunnelled = await ask('/sd', { host: 'localhost:9999' });
  expect(JSON.parse(tunnelled.body)).toMatchObject([{ targets: ['localhost:9999'] }, {}, {}]);
});

test('a name that is not of this machine is refused, whatever it resolves to', async () => {
  for (const host of [
    'evil.example',
    'evil.example:7071',
    '127.0.0.1.evil.example',
    'localhost.evil',
    '10.0.0.1',
  ])
    expect(await ask('/metrics', { host })).toMatchObject({ status: 403 });
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3:80', '[::1]:7071', 'LOCALHOST:1'])
    expect(await ask('/metrics', { host })).toMatchObject({ status: 200 });
});

test('why a page cannot be had is reported in a sentence, and never with a stack trace', async () => {
  nodePage = () => Promise.reject(new MusterError('resource_exhausted', 'the page is too large'));
  expect(await ask('/nodes/node-1/metrics')).toMatchObject({ status: 502, body: 'the page is too large\n' });
  nodePage = () => Promise.reject(new Error('broken at line 7'));
  const answer = await ask('/nodes/node-1/metrics');
  expect(answer).toMatchObject({ status: 500, body: expect.not.stringContaining('line 7') });
});

test('what is no HTTP ends its own connection only', async () => {
  const [, port] = server.address.split(':');
  const socket = connect({ host: '127.0.0.1', port: Number(port) });
  socket.on('error', () => {});
  socket.write('\u0000\u0001nonsense\r\n\r\n');
  socket.resume();
  await once(socket, 'close');
  expect(await ask('/healthz')).toMatchObject({ status: 200 });
});

test.each([
  { listen: '0.0.0.0:7071', message: /refusing to serve metrics on 0\.0\.0\.0/ },
  { listen: '[::]:7071', message: /refusing/ },
  { listen: 'metrics.example:80', message: /SSH tunnel/ },
  { listen: '127.0.0.1', message: /invalid address for --http/ },
  { listen: '127.0.0.1:99999', message: /invalid address/ },
])('$listen is refused', async ({ listen, message }) => {
  await expect(startHttpServer(listen, parts)).rejects.toThrow(message);
});

test('an address that is in use is named with its remedy', async () => {
  await expect(startHttpServer(server.address, parts)).rejects.toMatchObject({
    code: 'failed_precondition',
    message: `${server.address}, the address for metrics, is in use by another program; choose another address with --http (port 0 takes a free one)`,
  });
});
