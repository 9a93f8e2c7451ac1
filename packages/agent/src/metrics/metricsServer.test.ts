import { type ClientRequest, get, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { type MetricsServerOptions, startMetricsServer } from './metricsServer.ts';

const page = '# HELP muster_thing A thing.\n# TYPE muster_thing gauge\nmuster_thing 1\n';

async function served(change: Partial<MetricsServerOptions> = {}) {
  const server = await startMetricsServer({
    listen: '127.0.0.1:0',
    render: () => page,
    log: silentLogger,
    ...change,
  });
  onTestFinished(() => server.close());
  return server;
}

function answerOf(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    asked.once('response', resolve).once('error', reject);
    asked.end();
  });
}

const ask = (address: string, path: string, method = 'GET', headers = {}) =>
  answerOf(request(`http://${address}${path}`, { method, headers, agent: false }));

test('the page is there for Prometheus, as its format says', async () => {
  const { address } = await served();
  const answer = await ask(address, '/metrics');
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(await text(answer)).toBe(page);
});

test('each scrape shows what is true then', async () => {
  let scrapes = 0;
  const { address } = await served({ render: () => `muster_scrapes ${++scrapes}\n` });
  expect(await text(await ask(address, '/metrics'))).toBe('muster_scrapes 1\n');
  expect(await text(await ask(address, '/metrics?name[]=x'))).toBe('muster_scrapes 2\n');
});

test.each([
  ['/', 'GET', 404],
  ['/metrics/', 'GET', 404],
  ['/debug', 'POST', 404],
  ['//127.0.0.1/metrics', 'GET', 404],
  ['/metrics', 'POST', 405],
  ['/metrics', 'HEAD', 405],
])('nothing else is there: %s with %s', async (path, method, status) => {
  const { address } = await served();
  const answer = await ask(address, path, method);
  expect([answer.statusCode, await text(answer)]).not.toContain(page);
  expect(answer.statusCode).toBe(status);
  if (status === 405) expect(answer.headers.allow).toBe('GET');
});

test('a web page cannot read it through a name of its own', async () => {
  const { address } = await served();
  const port = address.split(':')[1];
  expect((await ask(address, '/metrics', 'GET', { host: `rebound.example:${port}` })).statusCode).toBe(403);
  for (const host of [`localhost:${port}`, `[::1]:${port}`, '127.0.0.1'])
    expect((await ask(address, '/metrics', 'GET', { host })).statusCode).toBe(200);
});

test.each([
  '0.0.0.0:9410',
  '10.0.0.1:9410',
  '[::]:9410',
  'node-1:9410',
  '127.0.0.1.example:9410',
  '128.0.0.1:1',
])('it is not opened to the network: %s', async (listen) => {
  await expect(served({ listen })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/open to the network at .* Use 127\.0\.0\.1:\d+; Prometheus elsewhere/),
  });
});

test.each(['', '9410', '127.0.0.1', '127.0.0.1:', ':9410', '127.0.0.1:70000', '127.0.0.1:x'])(
  'an address that is none is refused: %j',
  async (listen) => {
    await expect(served({ listen })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('write one like 127.0.0.1:9410'),
    });
  },
);

test.each(['localhost:0', '127.0.0.2:0'])(
  'it can be at any address of this machine alone: %s',
  async (listen) => {
    const { address } = await served({ listen });
    expect(address).toMatch(listen.startsWith('localhost') ? /^127\.0\.0\.1:\d+$/ : /^127\.0\.0\.2:\d+$/);
    expect((await ask(address, '/metrics')).statusCode).toBe(200);
  },
);

test('an address that is taken is reported with what to do', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise((resolve) => other.close(() => resolve())));
  const listen = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  await expect(served({ listen })).rejects.toMatchObject({
    code: 'unavailable',
    message: `The metrics page cannot be served at ${listen}: another program listens there. Choose another port with --metrics.`,
  });
});

test('a page that cannot be rendered is an error once in the log, and the server goes on', async () => {
  const errors: string[] = [];
  let isBroken = true;
  const { address } = await served({
    render: () => {
      if (isBroken) throw new Error('a bug');
      return page;
    },
    log: { ...silentLogger, error: (_, message) => errors.push(message) },
  });
  expect((await ask(address, '/metrics')).statusCode).toBe(500);
  expect((await ask(address, '/metrics')).statusCode).toBe(500);
  isBroken = false;
  expect((await ask(address, '/metrics')).statusCode).toBe(200);
  expect(errors).toEqual(['the metrics page cannot be rendered']);
});

function silentSocket(address: string): Promise<Socket> {
  const [host = '', port = ''] = address.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host, () => resolve(socket));
    socket.on('error', reject);
    onTestFinished(() => void socket.destroy());
  });
}

test('readers that never read hold up nobody, and cannot become many', async () => {
  const big = `${page}${'# filler\n'.repeat(2_000_000)}`;
  const { address } = await served({ render: () => big });
  for (let index = 0; index < 15; index += 1) {
    const socket = await silentSocket(address);
    socket.pause().write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n');
  }
  const last = await ask(address, '/metrics');
  expect((await text(last)).length).toBe(big.length);
  const extra = [await silentSocket(address), await silentSocket(address)];
  await waitFor('the one too many is turned away', () => extra.some(({ destroyed }) => destroyed));
});

test('closing does not wait for those who are still connected', async () => {
  const server = await served();
  const idle = await silentSocket(server.address);
  const kept = await answerOf(get(`http://${server.address}/metrics`));
  kept.resume();
  await server.close();
  await waitFor('the connection ends', () => idle.destroyed);
});
