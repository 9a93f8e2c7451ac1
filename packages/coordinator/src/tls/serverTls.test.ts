import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { messageOf } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { connectMuster } from '@muster/common/wire/client';
import { connectionProblem } from '@muster/common/wire/connectionProblem';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { Gate } from '../auth/gate.ts';
import { countingBytes } from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import { Connections, connectionLimits } from '../rpc/connections.ts';
import { type RunningServer, startServer } from '../rpc/server.ts';
import { authorityLifetimeMs, backdatedMs } from './authority.ts';
import {
  addressesForOthers,
  isRenewalDue,
  openServerTls,
  type ServerTls,
  serverLifetimeMs,
} from './serverTls.ts';

const hourMs = 60 * 60_000;

let dataDir: string;
let nowMs: number;
let random: RandomBytes;
let warnings: string[];
beforeEach(() => {
  random = countingBytes();
  warnings = [];
  dataDir = mkdtempSync(join(tmpdir(), 'server-tls-'));
  nowMs = Date.now();
});
afterEach(() => rmSync(dataDir, { recursive: true }));

async function open(host = '0.0.0.0', advertise: readonly string[] = []): Promise<ServerTls | null> {
  const tls = await openServerTls({
    dataDir,
    clusterId: 'c0ffee',
    host,
    advertise,
    random: (size) => random(size),
    wallMs: () => nowMs,
    log: { ...silentLogger, warn: (_fields, message) => warnings.push(message) },
  });
  onTestFinished(() => tls?.close());
  return tls;
}

function nobodysGate(): Gate {
  const clock = { wallMs: () => nowMs, monotonicMs: () => 0 };
  return new Gate({
    ...clock,
    clock: { step: null, systemWallMs: clock.wallMs },
    state: {
      credentialOf: () => undefined,
      credentials: new Map(),
      people: { users: new Map(), projects: new Map(), budgets: new Map() },
    },
    log: silentLogger,
  });
}

/** A server with no methods on loopback; what TLS does shows before any. */
async function serve(tls: ServerTls | null): Promise<RunningServer> {
  const nobody = nobodysGate();
  const server = await startServer(
    '127.0.0.1:0',
    nobody,
    anyConnections(),
    { muster: {}, agentHub: {} } as never,
    tls?.credentials,
  );
  onTestFinished(() => server.close());
  return server;
}

function anyConnections(): Connections {
  return new Connections({
    limits: connectionLimits(1_024),
    monotonicMs: () => performance.now(),
    log: silentLogger,
  });
}

/** Serial number of the certificate that a new connection is shown. */
async function shake({ address }: RunningServer, options: ConnectionOptions = {}) {
  const ca = readFileSync(join(dataDir, 'tls/ca.pem'));
  const port = Number(address.split(':')[1]);
  const socket = connect({ host: '127.0.0.1', port, ca, ALPNProtocols: ['h2'], ...options });
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) throw new Error('the server showed no certificate');
  return { certificate, protocol: socket.getProtocol() };
}

/** Signed for a time that is not yet, which a client of today cannot verify. */
function untilRenewed(server: RunningServer, first: Awaited<ReturnType<typeof shake>>) {
  return waitFor('a renewed certificate', () => shake(server, { rejectUnauthorized: false }), {
    until: ({ certificate }) => certificate.serialNumber !== first.certificate.serialNumber,
  });
}

test('a clock from before the CA was made is warned of; one that is a year behind is not', async () => {
  const madeMs = nowMs;
  await open();
  nowMs = madeMs - backdatedMs + 1_000;
  await open();
  expect(warnings).toEqual([]);
  nowMs = madeMs - 500 * 24 * hourMs;
  await open();
  expect(warnings).toEqual([
    expect.stringMatching(/^the clock of this machine is wrong: .*before the CA .*restart the coordinator$/),
  ]);
});

test('on loopback there is no TLS and no CA is made; with a CA from another start there is', async () => {
  expect(await open('127.0.0.1')).toBeNull();
  expect(await open('localhost')).toBeNull();
  expect(await open('0.0.0.0')).not.toBeNull();
  expect(await open('127.0.0.1')).not.toBeNull();
});

test('no server without TLS listens on a network', async () => {
  const parts = nobodysGate();
  for (const listen of ['0.0.0.0:0', '[::]:0', '192.0.2.1:7070']) {
    await expect(startServer(listen, parts, anyConnections(), {} as never)).rejects.toThrow(
      /^refusing to listen on .* without TLS$/,
    );
  }
});

test('the certificate names what is advertised and this machine, is good for 90 days, and is shown by TLS 1.3', async () => {
  const server = await serve(await open('0.0.0.0', ['gpu-head']));
  const { certificate, protocol } = await shake(server);
  expect(protocol).toBe('TLSv1.3');
  for (const host of ['gpu-head', 'localhost']) expect(certificate.checkHost(host)).toBe(host);
  for (const address of ['127.0.0.1', '::1']) expect(certificate.checkIP(address)).toBe(address);
  expect(certificate.validToDate.getTime() - nowMs).toBeGreaterThan(serverLifetimeMs - 1_000);
  expect(certificate.validToDate.getTime() - nowMs).toBeLessThanOrEqual(serverLifetimeMs);
  await expect(shake(server, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/protocol version/);
});

test.each([
  ['behind', -1],
  ['ahead', 1],
])(
  'a coordinator whose clock is a day %s is trusted by clients whose clock is right',
  async (_what, days) => {
    nowMs += days * 24 * hourMs;
    // The handshake is verified by the clock of this machine.
    expect((await shake(await serve(await open()))).protocol).toBe('TLSv1.3');
  },
);

test('one whose clock is two years ahead is refused, and the message names the clocks', async () => {
  nowMs += 730 * 24 * hourMs;
  const server = await serve(await open());
  const refusal = await shake(server).then(() => 'none', messageOf);
  expect(connectionProblem(server.address, refusal, true)?.message).toMatch(
    /is not valid yet: compare the clocks of both machines/,
  );
});

test('a server certificate never outlives its CA', async () => {
  nowMs -= authorityLifetimeMs - hourMs;
  await open();
  nowMs += authorityLifetimeMs - 2 * hourMs;
  const { certificate } = await shake(await serve(await open()));
  expect(certificate.validToDate.getTime()).toBeLessThanOrEqual(nowMs + 2 * hourMs);
});

test('after two thirds of its life new connections get a new certificate, and open ones go on', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const tls = await open();
  vi.advanceTimersByTime(0);
  const server = await serve(tls);
  const api = connectMuster({
    address: server.address,
    token: 'x',
    caCertificate: readFileSync(join(dataDir, 'tls/ca.pem'), 'utf8'),
  });
  onTestFinished(() => api.close());
  const refused = { code: 'unauthenticated' };
  await expect(api.getCluster()).rejects.toMatchObject(refused);
  const first = await shake(server);

  nowMs += (serverLifetimeMs * 2) / 3 - hourMs;
  vi.advanceTimersByTime(hourMs);
  expect((await shake(server)).certificate.serialNumber).toBe(first.certificate.serialNumber);

  nowMs += hourMs;
  vi.advanceTimersByTime(hourMs);
  const renewed = await untilRenewed(server, first);
  expect(renewed.certificate.validFromDate.getTime()).toBe(Math.floor((nowMs - backdatedMs) / 1_000) * 1_000);
  expect(renewed.protocol).toBe('TLSv1.3');
  await expect(shake(server, { rejectUnauthorized: false, maxVersion: 'TLSv1.2' })).rejects.toThrow(
    /protocol version/,
  );
  await expect(api.getCluster()).rejects.toMatchObject(refused);
});

test('a renewal that fails is reported and tried again, and the old certificate stays until then', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = await serve(await open());
  const first = await shake(server);
  const working = random;
  random = () => {
    throw new Error('no entropy');
  };

  nowMs += serverLifetimeMs;
  vi.advanceTimersByTime(hourMs);
  await waitFor('a warning', () => warnings.length);
  expect(warnings).toEqual(['the server certificate could not be renewed, trying again later']);
  expect((await shake(server)).certificate.serialNumber).toBe(first.certificate.serialNumber);

  random = working;
  vi.advanceTimersByTime(hourMs);
  await untilRenewed(server, first);
});

test('a certificate is renewed in time, and when the clock was put back before it', () => {
  expect(isRenewalDue(someMs, someMs)).toBe(false);
  expect(isRenewalDue(someMs, someMs + (serverLifetimeMs * 2) / 3 - 1)).toBe(false);
  expect(isRenewalDue(someMs, someMs + (serverLifetimeMs * 2) / 3)).toBe(true);
  expect(isRenewalDue(someMs, someMs - backdatedMs)).toBe(false);
  expect(isRenewalDue(someMs, someMs - backdatedMs - 1)).toBe(true);
});

test('other machines get the address of a server on the network, and of one on loopback only what is advertised', () => {
  const served = '127.0.0.1:7070';
  expect(addressesForOthers('127.0.0.1', [], served)).toEqual([]);
  expect(addressesForOthers('127.0.0.1', ['behind-a-tunnel'], served)).toEqual(['behind-a-tunnel:7070']);
  const [first, ...own] = addressesForOthers('0.0.0.0', ['2001:db8::1'], served);
  expect(first).toBe('[2001:db8::1]:7070');
  expect(own).toContain(`${hostname()}:7070`);
});

test('join tokens pin the CA, whose file clients on this machine get', async () => {
  const tls = await open();
  expect(tls?.authorityPath).toBe(join(dataDir, 'tls/ca.pem'));
  expect(tls?.authorityDigest.length).toBe(32);
  expect((await open())?.authorityDigest).toEqual(tls?.authorityDigest);
});
