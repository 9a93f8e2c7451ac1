import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ErrorCode, MusterError } from '@muster/common/errors';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { testAuthority } from '../../../../test/support/tlsServer.ts';
import {
  type CredentialFile,
  credentialFile,
  makeCredential,
  obtainCredential,
  type RequestJoin,
} from './credential.ts';

let directory: string;
let file: CredentialFile;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'credential-'));
  file = credentialFile(directory);
});
afterEach(() => rm(directory, { recursive: true }));

const authority = await testAuthority();

const lost = () => Promise.reject(new MusterError('unavailable', 'the answer was lost'));
const neverAsked = () => Promise.reject(new Error('nobody was to be asked'));

describe.each([
  ['with TLS', authority.certificate],
  ['without TLS', null],
])('%s', (_mode, ca) => {
  const certificateOf = async (key: string) => (ca === null ? null : authority.certify(key, 'a'));

  /** `obtainCredential` at a coordinator that proved itself by that CA. */
  function obtain(nodeName: string, joinToken: string | null, requestJoin: RequestJoin): Promise<string> {
    return obtainCredential(file, nodeName, joinToken, requestJoin, ca).then(({ credential }) => credential);
  }

  /** A coordinator that takes one join, and refuses others for `refusal`. */
  function aCoordinator(refusal: ErrorCode | null = null) {
    const asked: string[] = [];
    const requestJoin = async (_token: string, credential: string) => {
      asked.push(credential);
      if (refusal !== null) throw new MusterError(refusal, 'no');
      return certificateOf(credential);
    };
    return { asked, requestJoin };
  }

  test('the first start trades the token for a credential made here, stored before it is sent', async () => {
    let storedWhenAsked: unknown;
    const credential = await obtain('a', 'token', async (_token, asked) => {
      storedWhenAsked = file.read();
      return certificateOf(asked);
    });
    expect(credential).toMatch(ca === null ? /^muster_agent_[\w-]{43}$/ : /^-----BEGIN PRIVATE KEY-----\n/);
    expect(storedWhenAsked).toEqual({ nodeName: 'a', credential, joined: false, caCertificate: ca });
    expect(file.read()).toMatchObject({ nodeName: 'a', credential, joined: true, caCertificate: ca });
    expect((await stat(join(directory, 'credential'))).mode & 0o777).toBe(0o600);
  });

  test('later starts ask nobody, with a token or without', async () => {
    const credential = await obtain('a', 'token', aCoordinator().requestJoin);
    expect(await obtain('a', null, neverAsked)).toBe(credential);
    expect(await obtain('a', 'token', neverAsked)).toBe(credential);
  });

  test('two nodes never make the same credential', async () => {
    const [a, b] = [aCoordinator(), aCoordinator()];
    await obtain('a', 'token', a.requestJoin);
    await rm(join(directory, 'credential'));
    await obtain('a', 'token', b.requestJoin);
    expect(a.asked).not.toEqual(b.asked);
  });

  test('without a credential and a token it says how to join', async () => {
    await expect(obtain('a', null, neverAsked)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining('muster token create a'),
    });
  });

  test('a data directory of another node is refused', async () => {
    await obtain('a', 'token', aCoordinator().requestJoin);
    await expect(obtain('b', 'token', neverAsked)).rejects.toMatchObject({
      code: 'failed_precondition',
      message: expect.stringContaining('--name a'),
    });
  });

  test('a refused join is an error, and the next token is tried with another credential', async () => {
    const refusing = aCoordinator('unauthenticated');
    await expect(obtain('a', 'wrong', refusing.requestJoin)).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    const accepting = aCoordinator();
    await obtain('a', 'right', accepting.requestJoin);
    expect(accepting.asked).not.toEqual(refusing.asked);
    expect(file.read()?.joined).toBe(true);
  });

  test('a coordinator that cannot be reached is an error, however often it was tried', async () => {
    await expect(obtain('a', 'token', lost)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(obtain('a', 'token', lost)).rejects.toMatchObject({ code: 'unavailable' });
  });

  test("a token that it has not tried is somebody's word to join anew, and asked about once", async () => {
    const first = await obtain('a', 'token', aCoordinator().requestJoin);
    const replacing = aCoordinator();
    const second = await obtain('a', 'another', replacing.requestJoin);
    expect(second).not.toBe(first);
    expect(replacing.asked).toEqual([second]);
    expect(file.read()).toMatchObject({ credential: second, previous: { credential: first }, next: null });
    expect(await obtain('a', 'another', neverAsked)).toBe(second);
    const refusing = aCoordinator('already_exists');
    expect(await obtain('a', 'used elsewhere', refusing.requestJoin), 'it goes on with what it has').toBe(
      second,
    );
    expect(await obtain('a', 'used elsewhere', neverAsked)).toBe(second);
  });

  test('an answer that is lost while it joins anew costs nothing: the same secret is traded again', async () => {
    const first = await obtain('a', 'token', aCoordinator().requestJoin);
    await expect(obtain('a', 'another', lost)).rejects.toMatchObject({ code: 'unavailable' });
    const stored = file.read();
    expect(stored).toMatchObject({ credential: first });
    const again = aCoordinator();
    expect(await obtain('a', 'another', again.requestJoin)).toBe(stored?.next);
    expect(again.asked).toEqual([stored?.next]);
  });

  test('a join that is refused claims no directory, and one that was never answered no name', async () => {
    await expect(obtain('wrong', 'token', aCoordinator('unauthenticated').requestJoin)).rejects.toThrow('no');
    expect(file.read()).toBeNull();
    await expect(obtain('wrong', 'token', lost)).rejects.toThrow('lost');
    expect(file.read()).toMatchObject({ nodeName: 'wrong', joined: false });
    const { asked, requestJoin } = aCoordinator();
    expect(await obtain('right', 'token', requestJoin)).toBe(asked[0]);
    expect(file.read()).toMatchObject({ nodeName: 'right', joined: true });
  });
});

describe('without TLS', () => {
  const obtainPlain = async (nodeName: string, joinToken: string | null, requestJoin: RequestJoin) =>
    (await obtainCredential(file, nodeName, joinToken, requestJoin, null)).credential;

  test.each(['already_exists', 'unauthenticated'] as const)(
    'when the answer to a join was lost, its credential is used once the token is %s',
    async (refusal) => {
      await expect(obtainPlain('a', 'token', lost)).rejects.toThrow('the answer was lost');
      const asked: string[] = [];
      const requestJoin = async (_token: string, credential: string) => {
        asked.push(credential);
        throw new MusterError(refusal, 'no');
      };
      expect([await obtainPlain('a', 'token', requestJoin)]).toEqual(asked);
    },
  );

  test('when the answer to a join was lost, its credential is used without a token too', async () => {
    await expect(obtainPlain('a', 'token', lost)).rejects.toThrow('the answer was lost');
    expect(await obtainPlain('a', null, neverAsked)).toBe(file.read()?.credential);
  });

  test('what was stored before there was TLS has no CA', async () => {
    await writeFile(join(directory, 'credential'), '{"nodeName":"a","credential":"c","joined":true}');
    expect(file.read()).toEqual({ nodeName: 'a', credential: 'c', joined: true, caCertificate: null });
  });

  test.each(['', '{"nodeName":"a","cred', '[]', '{"nodeName":"a"}'])(
    '%j is no credential',
    async (content) => {
      await writeFile(join(directory, 'credential'), content);
      await expect(obtainPlain('a', 'token', neverAsked)).rejects.toMatchObject({
        code: 'failed_precondition',
        message: expect.stringContaining(join(directory, 'credential')),
      });
    },
  );
});

describe('with TLS', () => {
  const ca = authority.certificate;
  const certify: RequestJoin = (_token, key) => authority.certify(key, 'a');

  test('another CA, named by the operator, is kept from then on', async () => {
    const { credential } = await obtainCredential(file, 'a', 'token', certify, ca);
    expect(await obtainCredential(file, 'a', null, neverAsked, 'another')).toMatchObject({ credential });
    expect(file.read()).toMatchObject({ nodeName: 'a', credential, joined: true, caCertificate: 'another' });
  });

  test('the key never leaves the file, and the certificate is kept beside it', async () => {
    const { credential, certificate } = await obtainCredential(file, 'a', 'token', certify, ca);
    const parsed = new X509Certificate(certificate ?? '');
    expect(parsed.subject).toBe('CN=a');
    expect(parsed.checkPrivateKey(createPrivateKey(credential))).toBe(true);
    expect(file.read()).toMatchObject({ credential, certificate });
  });

  test.each([
    ['no certificate', () => Promise.resolve(null)],
    ['the certificate of another key', () => authority.certify(makeCredential(true), 'a')],
    ['what is no certificate', () => Promise.resolve('-----BEGIN CERTIFICATE-----')],
  ])('a coordinator that returns %s is refused, and the same key asks again', async (_what, answer) => {
    await expect(obtainCredential(file, 'a', 'token', answer, ca)).rejects.toThrow(
      'returned no certificate for the key of a',
    );
    const key = file.read()?.credential;
    expect(file.read()).toMatchObject({ joined: false });
    expect(await obtainCredential(file, 'a', 'token', certify, ca)).toMatchObject({ credential: key });
  });

  test('a key whose certificate has not arrived is good for nothing without a token', async () => {
    await expect(obtainCredential(file, 'a', 'token', lost, ca)).rejects.toThrow('lost');
    await expect(obtainCredential(file, 'a', null, neverAsked, ca)).rejects.toThrow(
      'node a has no certificate, which agents of a coordinator with TLS prove themselves by: create a token with `muster token create a --replace`',
    );
    const refused = () =>
      Promise.reject(new MusterError('already_exists', 'this join token was used already'));
    await expect(obtainCredential(file, 'a', 'token', refused, ca)).rejects.toThrow('was used already');
  });

  test('a secret of the time before TLS is replaced by a key with a token, and refused without', async () => {
    await obtainCredential(file, 'a', 'token', () => Promise.resolve(null), null);
    await expect(obtainCredential(file, 'a', null, neverAsked, ca)).rejects.toThrow(
      'node a has no certificate',
    );
    expect(await obtainCredential(file, 'a', 'another', certify, ca)).toMatchObject({
      credential: expect.stringMatching(/^-----BEGIN PRIVATE KEY-----/),
      certificate: expect.stringMatching(/^-----BEGIN CERTIFICATE-----/),
    });
  });

  test('a coordinator without TLS is shown no key', async () => {
    await obtainCredential(file, 'a', 'token', certify, ca);
    await expect(obtainCredential(file, 'a', null, neverAsked, null)).rejects.toThrow('cannot verify');
  });
});
