import names from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mailSink } from './mail.ts';
import { trustedWith } from './safeRequest.ts';
import { RefusedNotification } from './sink.ts';
import { aNotification, aServerCertificate } from './sinkFixture.ts';

interface Received {
  readonly from: string;
  readonly to: readonly string[];
  readonly text: string;
  readonly user: unknown;
}

async function startMailServer(
  refuse: (address: string) => Error | null = () => null,
  tls: { readonly key: string; readonly cert: string; readonly secure: boolean } | null = null,
): Promise<{ port: number; mails: readonly Received[] }> {
  const mails: Received[] = [];
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: tls === null ? ['STARTTLS'] : [],
    secure: false,
    ...tls,
    onAuth: ({ username, password }, _session, callback) =>
      password === 'right' ? callback(null, { user: username }) : callback(new Error('wrong password')),
    onRcptTo: ({ address }, _session, callback) => callback(refuse(address)),
    onData(stream, { envelope, user }, callback) {
      let text = '';
      stream.setEncoding('utf8');
      stream.on('data', (piece: string) => {
        text += piece;
      });
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), text, user });
        callback();
      });
    },
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as AddressInfo).port, mails };
}

const never = new AbortController().signal;
const people = { from: 'muster@lab.example', to: ['ann@lab.example', 'ops@lab.example'] };

function sinkTo(port: number, credentials: string | null = null) {
  const url = `smtp://127.0.0.1:${port}`;
  return mailSink({ url, ...people, credentials, allowsPrivate: true, ca: null }, 'c0ffee');
}

test('a mail has the message, what it is about, and headers without line ends from outside', async () => {
  const { port, mails } = await startMailServer();
  const notification = aNotification({ subjectName: 'train\r\nBcc: eve@example.com' });
  await sinkTo(port, 'muster:right').deliver(notification, never);
  const [mail] = mails;
  expect(mail).toMatchObject({ from: people.from, to: people.to, user: 'muster' });
  const [headers = '', ...parts] = mail?.text.split('\r\n\r\n') ?? [];
  const body = parts.join('\n');
  expect(headers.replaceAll(/\r\n\s+/g, ' ')).toContain(
    'Subject: [FIRING] critical: failed (train Bcc: eve@example.com)',
  );
  expect(headers).not.toMatch(/^Bcc:/m);
  expect(headers).toContain('Message-ID: <c0ffee-7@muster-c0ffee>');
  expect(body).toContain('train has failed: cuda_oom');
  expect(body).toContain('Project: vision');
});

test('a server that refuses a recipient for good ends the tries, a wrong password does not', async () => {
  const refusing = await startMailServer(() =>
    Object.assign(new Error('no such user'), { responseCode: 550 }),
  );
  await expect(sinkTo(refusing.port).deliver(aNotification(), never)).rejects.toBeInstanceOf(
    RefusedNotification,
  );
  const { port } = await startMailServer();
  const error: unknown = await sinkTo(port, 'muster:wrong')
    .deliver(aNotification(), never)
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(RefusedNotification);
});

test('without leave for private addresses nothing is sent', async () => {
  const { port, mails } = await startMailServer();
  const settings = {
    url: `smtp://127.0.0.1:${port}`,
    ...people,
    credentials: null,
    allowsPrivate: false,
    ca: null,
  };
  await expect(mailSink(settings, 'c0ffee').deliver(aNotification(), never)).rejects.toThrow(
    /private network/,
  );
  expect(mails).toEqual([]);
  expect(() => mailSink({ ...settings, url: 'http://x' }, 'c0ffee')).toThrow(/smtp:\/\/host:587/);
});

test('a mail goes to the address that was looked at, whatever the name of the server means a moment later', async () => {
  const { port, mails } = await startMailServer();
  const addresses = ['127.0.0.1', '10.255.255.1'];
  const answer = async () => ({ address: addresses.shift() ?? '10.255.255.2', family: 4 });
  const spy = vi.spyOn(names, 'lookup').mockImplementation(answer);
  onTestFinished(() => spy.mockRestore());
  const settings = { url: `smtp://mail.test:${port}`, ...people, credentials: null, ca: null };
  await mailSink({ ...settings, allowsPrivate: true }, 'c0ffee').deliver(aNotification(), never);
  expect(mails).toHaveLength(1);
  expect(spy, 'the library looks nothing up').toHaveBeenCalledTimes(1);
  const refused = mailSink({ ...settings, allowsPrivate: false }, 'c0ffee');
  await expect(refused.deliver(aNotification(), never)).rejects.toThrow(
    /mail\.test is 10\.255\.255\.1, an address/,
  );
});

test.each([
  ['STARTTLS', 'smtp', false],
  ['TLS from the first byte', 'smtps', true],
])(
  'over %s it goes to a server of a CA that is configured, and to no other',
  async (_how, scheme, secure) => {
    const { ca, ...certificate } = await aServerCertificate('127.0.0.1');
    const { port, mails } = await startMailServer(() => null, { ...certificate, secure });
    const settings = { url: `${scheme}://127.0.0.1:${port}`, ...people, credentials: 'muster:right' };
    const sink = (trusted: readonly string[] | null) =>
      mailSink({ ...settings, allowsPrivate: true, ca: trusted }, 'c0ffee');
    const error: unknown = await sink(null)
      .deliver(aNotification(), never)
      .catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/certificate of 127\.0\.0\.1 is not trusted: .*--alert-ca FILE/);
    expect(error, 'it is tried again').not.toBeInstanceOf(RefusedNotification);
    expect(mails).toEqual([]);
    await sink(trustedWith(ca)).deliver(aNotification(), never);
    expect(mails).toMatchObject([{ user: 'muster' }]);
  },
);

test('a certificate of another host is refused', async () => {
  const { ca, ...certificate } = await aServerCertificate('mail.example.com');
  const { port, mails } = await startMailServer(() => null, { ...certificate, secure: true });
  const settings = { url: `smtps://127.0.0.1:${port}`, ...people, credentials: null, allowsPrivate: true };
  const delivery = mailSink({ ...settings, ca: trustedWith(ca) }, 'c0ffee').deliver(aNotification(), never);
  await expect(delivery).rejects.toThrow(/127\.0\.0\.1/);
  expect(mails).toEqual([]);
});
