import { describe, expect, it } from 'vitest';
import { parseNatsUrl } from './natsStream.ts';

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
