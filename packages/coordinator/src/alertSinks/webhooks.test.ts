import { createHmac } from 'node:crypto';
import names from 'node:dns/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { someMs } from '../modelFixture.ts';
import { alertmanagerSink } from './alertmanager.ts';
import { checkedTarget, isPrivateAddress, post, type SafeTarget, trustedWith } from './safeRequest.ts';
import { RefusedNotification } from './sink.ts';
import { aNotification, aServerCertificate, startReceiver } from './sinkFixture.ts';
import { slackSink, webhookSink } from './webhooks.ts';

const wallMs = () => someMs;
const never = new AbortController().signal;

function targetOf(url: string, fields: Partial<SafeTarget> = {}): SafeTarget {
  return { ...checkedTarget('the address', url, true), ...fields };
}

test('a webhook gets JSON that is signed with its secret and the time, and the same id in each try', async () => {
  const { url, requests } = await startReceiver();
  await webhookSink(targetOf(`${url}/hook?a=1`), 'secret', wallMs).deliver(aNotification(), never);
  const [request] = requests;
  expect(request?.path).toBe('/hook?a=1');
  expect(JSON.parse(request?.body ?? '')).toMatchObject({
    id: 'c0ffee-7',
    status: 'firing',
    alert: 'failed',
    episode: 'failed-7',
    firedAt: new Date(someMs).toISOString(),
  });
  const seconds = Math.floor(someMs / 1_000);
  const hex = createHmac('sha256', 'secret').update(`${seconds}.${request?.body}`).digest('hex');
  expect(request?.headers['x-muster-signature']).toBe(`t=${seconds},v1=${hex}`);
  expect(request?.headers['x-muster-delivery']).toBe('c0ffee-7');
});

test('without a secret nothing is signed', async () => {
  const { url, requests } = await startReceiver();
  await webhookSink(targetOf(url), null, wallMs).deliver(aNotification(), never);
  expect(requests[0]?.headers).not.toHaveProperty('x-muster-signature');
});

test('Slack gets a text in which nothing is markup or calls everybody', async () => {
  const { url, requests } = await startReceiver();
  await slackSink(targetOf(url)).deliver(aNotification({ message: '<!channel> & *x*' }), never);
  expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
    text: '*[FIRING] critical: failed (train)*\n&lt;!channel&gt; &amp; *x*',
  });
});

test('Alertmanager gets labels that tell the alert from others, and an end', async () => {
  const { url, requests } = await startReceiver();
  const sink = alertmanagerSink(targetOf(`${url}/prefix/`), {
    firing: () => [],
    wallMs,
    clusterId: 'c0ffee',
  });
  await sink.deliver(aNotification({ labels: { 'a-b': 'x', alertname: 'y' } }), never);
  await sink.deliver(aNotification({ status: 'resolved', atMs: someMs + 5 }), never);
  sink.close?.();
  expect(requests[0]?.path).toBe('/prefix/api/v2/alerts');
  const [firing, resolved] = requests.map(({ body }) => JSON.parse(body)[0]);
  expect(firing.labels).toEqual({
    a_b: 'x',
    alertname: 'failed',
    severity: 'critical',
    cluster: 'c0ffee',
    job: 'job_00000000000b',
    project: 'vision',
  });
  expect(Date.parse(firing.endsAt)).toBeGreaterThan(someMs);
  expect(resolved.endsAt).toBe(new Date(someMs + 5).toISOString());
});

test.each([
  [301, RefusedNotification],
  [400, RefusedNotification],
  [410, RefusedNotification],
  [404, Error],
  [429, Error],
  [500, Error],
  [503, Error],
])('an answer of %i is final, or may become better', async (status, kind) => {
  const { url, requests } = await startReceiver((response) =>
    response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end('no'),
  );
  const delivery = webhookSink(targetOf(url), null, wallMs).deliver(aNotification(), never);
  const error: unknown = await delivery.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(kind);
  expect(error instanceof RefusedNotification).toBe(kind === RefusedNotification);
  expect(requests).toHaveLength(1);
});

test('a receiver that never answers, or never ends its answer, is given up in its time', async () => {
  const silent = await startReceiver(() => {});
  await expect(post(targetOf(silent.url, { timeoutMs: 100 }), '', {}, never)).rejects.toThrow(
    'no answer within 0.1 s',
  );
  const endless = await startReceiver((response) => response.write('x'.repeat(100_000)));
  const { text } = await post(targetOf(endless.url), '', {}, never);
  expect(text.length).toBeLessThanOrEqual(4_096);
});

test('private addresses and http are refused unless they are allowed', async () => {
  const { url, requests } = await startReceiver();
  const target = { url: new URL(url), allowsPrivate: false };
  await expect(post(target, '', {}, never)).rejects.toThrow(/private network.*--alert-private on/);
  const named = { url: new URL(url.replace('127.0.0.1', 'localhost')), allowsPrivate: false };
  await expect(post(named, '', {}, never)).rejects.toThrow(/private network/);
  expect(requests).toEqual([]);
  expect(() => checkedTarget('it', 'http://example.com/', false)).toThrow(/expected https/);
  expect(() => checkedTarget('it', 'file:///etc/passwd', true)).toThrow(/expected https/);
  expect(() => checkedTarget('it', 'https//user:password', true)).toThrow(/^it is not a URL/);
});

test('over TLS it goes to a server of a CA that is configured, and to no other', async () => {
  const certificate = await aServerCertificate('127.0.0.1');
  const { url, requests } = await startReceiver(undefined, certificate);
  const deliver = (ca: readonly string[] | null) =>
    webhookSink(targetOf(url, { ca }), null, wallMs).deliver(aNotification(), never);
  const error: unknown = await deliver(null).catch((reason: unknown) => reason);
  expect(String(error)).toMatch(/certificate of 127\.0\.0\.1 is not trusted: .*--alert-ca FILE/);
  expect(error, 'it is tried again').not.toBeInstanceOf(RefusedNotification);
  await expect(deliver(trustedWith((await aServerCertificate('127.0.0.1')).ca))).rejects.toThrow(
    /certificate/,
  );
  expect(requests).toEqual([]);
  await deliver(trustedWith(certificate.ca));
  expect(requests).toHaveLength(1);
  expect(() => trustedWith('no certificate')).toThrow(/--alert-ca has to hold certificates/);
});

test('a certificate of another host is refused', async () => {
  const certificate = await aServerCertificate('example.com');
  const { url, requests } = await startReceiver(undefined, certificate);
  const target = targetOf(url, { ca: trustedWith(certificate.ca) });
  await expect(post(target, '', {}, never)).rejects.toThrow(/127\.0\.0\.1/);
  expect(requests).toEqual([]);
});

test('the connection goes to the address that was looked at, whatever the name means a moment later', async () => {
  const { url, requests } = await startReceiver();
  const addresses = ['127.0.0.1', '10.255.255.1'];
  const answer = async () => ({ address: addresses.shift() ?? '10.255.255.2', family: 4 });
  const spy = vi.spyOn(names, 'lookup').mockImplementation(answer);
  onTestFinished(() => spy.mockRestore());
  await post(targetOf(url.replace('127.0.0.1', 'receiver.test')), '', {}, never);
  expect(requests).toHaveLength(1);
  expect(spy).toHaveBeenCalledTimes(1);
  const refused = { url: new URL('https://receiver.test/'), allowsPrivate: false };
  await expect(post(refused, '', {}, never)).rejects.toThrow(/receiver\.test is 10\.255\.255\.1, an address/);
});

test.each([
  ['127.0.0.1', true],
  ['10.1.2.3', true],
  ['172.31.255.255', true],
  ['192.168.0.1', true],
  ['169.254.169.254', true],
  ['100.64.0.1', true],
  ['0.0.0.0', true],
  ['::1', true],
  ['::', true],
  ['fe80::1', true],
  ['fd00::1', true],
  ['::ffff:127.0.0.1', true],
  ['::ffff:10.0.0.1', true],
  ['::ffff:7f00:1', true],
  ['::7f00:1', true],
  ['2002:7f00:1::', true],
  ['2001:0:1::', true],
  ['64:ff9b:1::a00:1', true],
  ['fec0::1', true],
  ['64:ff9b::7f00:1', true],
  ['no address', true],
  ['8.8.8.8', false],
  ['172.32.0.1', false],
  ['2606:4700::1111', false],
  ['::ffff:8.8.8.8', false],
])('whether %s is private: %s', (address, expected) => {
  expect(isPrivateAddress(address)).toBe(expected);
});
