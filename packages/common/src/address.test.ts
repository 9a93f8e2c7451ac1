import { expect, test } from 'vitest';
import { formatAddress, isLoopbackHost, parseAddress } from './address.ts';

test.each([
  ['127.0.0.1:7070', '127.0.0.1', 7070],
  ['gpu-head.lan:0', 'gpu-head.lan', 0],
  ['my_node:65535', 'my_node', 65_535],
  ['[::1]:7070', '::1', 7070],
  ['[::ffff:192.0.2.1]:1', '::ffff:192.0.2.1', 1],
])('%s is host and port, and is written so again', (text, host, port) => {
  expect(parseAddress(text)).toEqual({ host, port });
  expect(formatAddress({ host, port })).toBe(text);
});

test.each([
  '',
  '7070',
  ':7070',
  'localhost',
  'a:65536',
  'a:-1',
  '::1:7070',
  'http://a:1',
  'a b:1',
  'a:1 ',
  '[]:1',
])('"%s" is no address', (text) => {
  expect(parseAddress(text)).toBeNull();
});

test('only what cannot leave the machine is loopback', () => {
  for (const host of ['127.0.0.1', '127.255.1.2', 'localhost', '::1'])
    expect(isLoopbackHost(host), host).toBe(true);
  for (const host of ['127.0.0.1.example.org', '0.0.0.0', '::', '10.127.0.0', 'localhost.example.org', ''])
    expect(isLoopbackHost(host), host).toBe(false);
});
