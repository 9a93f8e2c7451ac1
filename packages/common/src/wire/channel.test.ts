/** What a client makes of servers of every kind, over real connections. */
import { expect, onTestFinished, test } from 'vitest';
import { startGrpcServer, testAuthority } from '../../../../test/support/tlsServer.ts';
import { connectMuster } from './client.ts';

const dayMs = 24 * 60 * 60_000;
const authority = await testAuthority();
const otherAuthority = await testAuthority();
const trusted = authority.certificate;

/** How a call ends; a server that can be talked to has no such method. */
async function callAt(
  address: string,
  caCertificate: string | null,
): Promise<{ code: string; message: string }> {
  const api = connectMuster({ address, token: 'secret', caCertificate });
  onTestFinished(() => api.close());
  return api.getCluster().then(
    () => expect.unreachable(),
    (error: { code: string; message: string }) => error,
  );
}

const talked = { message: expect.stringContaining('does not implement the method') };

test.each(['127.0.0.1', 'localhost'])(
  'a server of the trusted CA is talked to at %s, without a warning',
  async (host) => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const port = await startGrpcServer(await authority.issue());
    expect(await callAt(`${host}:${port}`, trusted)).toMatchObject(talked);
    expect(warnings).toEqual([]);
  },
);

test('without TLS a server is talked to on loopback only', async () => {
  const port = await startGrpcServer(null);
  expect(await callAt(`127.0.0.1:${port}`, null)).toMatchObject(talked);
  expect(() => connectMuster({ address: '192.0.2.1:7070', token: 'secret' })).toThrow('no CA');
});

test('what is no CA is reported to be none', () => {
  const connect = () =>
    connectMuster({ address: '127.0.0.1:1', token: 'secret', caCertificate: 'no certificate' });
  expect(connect).toThrow('the CA is not a certificate in PEM');
});

test.each([
  ['of another CA', await otherAuthority.issue(), /is not the coordinator whose CA is trusted here/],
  [
    'of another CA that hides it',
    await otherAuthority.issue({ leafOnly: true }),
    /is not the coordinator whose CA/,
  ],
  [
    'that has expired',
    await authority.issue({ validMs: [-2 * dayMs, -dayMs] }),
    /has expired: compare the clocks/,
  ],
  [
    'of tomorrow',
    await authority.issue({ validMs: [dayMs / 2, dayMs] }),
    /is not valid yet: compare the clocks/,
  ],
  [
    'of another host',
    await authority.issue({ hosts: ['gpu-head', '192.0.2.1'] }),
    /does not name 127\.0\.0\.1: start the coordinator with --advertise 127\.0\.0\.1, or use a name of the certificate: .*192\.0\.2\.1$/,
  ],
  ['by TLS 1.2', await authority.issue({ version: 'TLSv1.2' }), /has no TLS 1\.3/],
  ['of none', null, /does not speak TLS/],
])('a server with a certificate %s is refused with the reason', async (_what, context, message) => {
  const port = await startGrpcServer(context);
  const refusal = await callAt(`127.0.0.1:${port}`, trusted);
  expect(refusal.message).toMatch(message);
  expect(refusal.message).toContain(`127.0.0.1:${port}`);
  expect(refusal.code).toBe('permission_denied');
});

test('a name that the certificate lacks is answered with the names that it has', async () => {
  const port = await startGrpcServer(await authority.issue({ hosts: ['gpu-head', '192.0.2.1'] }));
  const { message } = await callAt(`localhost:${port}`, trusted);
  expect(message).toMatch(/--advertise localhost, or use a name of the certificate: gpu-head, 192\.0\.2\.1$/);
});

test('without TLS to a server with it: the error names the CA', async () => {
  const port = await startGrpcServer(await authority.issue());
  expect(await callAt(`127.0.0.1:${port}`, null)).toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(
      /closes every connection at once: a coordinator with TLS, whose CA .*\(--ca or MUSTER_CA\)/,
    ),
  });
});

test('where no server listens no coordinator answers, with TLS and without', async () => {
  for (const ca of [null, trusted])
    expect(await callAt('127.0.0.1:1', ca)).toMatchObject({
      code: 'unavailable',
      message: 'no coordinator answers at 127.0.0.1:1',
    });
});
