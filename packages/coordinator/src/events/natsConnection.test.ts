import { describe, expect, it, test } from 'vitest';
import { parseNatsCredentials, parseNatsUrl } from './natsConnection.ts';

describe('parseNatsUrl', () => {
  it('reads servers, credentials and whether encryption is a must', () => {
    expect(parseNatsUrl('nats://127.0.0.1:4222')).toEqual({
      servers: ['127.0.0.1:4222'],
      shown: '127.0.0.1:4222',
      tls: false,
      credentials: null,
    });
    expect(parseNatsUrl('tls://bob:p%40ss@a.example, tls://b.example:4333')).toEqual({
      servers: ['a.example', 'b.example:4333'],
      shown: 'a.example,b.example:4333',
      tls: true,
      credentials: { user: 'bob', pass: 'p@ss' },
    });
    expect(parseNatsUrl('nats://t0ken@[::1]:4222').credentials).toEqual({ token: 't0ken' });
  });

  it.each([
    '',
    'localhost',
    'http://localhost:4222',
    'nats://',
    'nats://a:4222,b:s3cret',
    'nats://b:s3cret%@a',
  ])('refuses "%s"', (url) => {
    expect(() => parseNatsUrl(url)).toThrow(/nats:\/\/host:4222/);
    expect(() => parseNatsUrl(url)).not.toThrow(/s3cret/);
  });
});

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
