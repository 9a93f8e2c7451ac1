import { expect, test } from 'vitest';
import { parseNatsCredentials } from './natsStream.ts';

test('a file holds a user and password, a token, the seed of an nkey, or what nsc writes', () => {
  expect(parseNatsCredentials('muster:p@ss:word\n')).toEqual({ user: 'muster', pass: 'p@ss:word' });
  expect(parseNatsCredentials('s3cret-token')).toEqual({ token: 's3cret-token' });
  const creds = '-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n';
  expect(parseNatsCredentials(creds)).toHaveProperty('authenticator');
  const seed = `SU${'A'.repeat(56)}`;
  expect(parseNatsCredentials(`${seed}\n`)).toHaveProperty('authenticator');
  expect(parseNatsCredentials(seed.slice(0, -1))).toEqual({ token: seed.slice(0, -1) });
});

test.each(['', ' \n', ':password', 'two words', 'user:pass\nuser:pass'])(
  '%j is none of these, and not repeated',
  (text) => {
    expect(() => parseNatsCredentials(text)).toThrow('holds neither one line');
  },
);
