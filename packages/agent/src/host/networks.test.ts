import { expect, test } from 'vitest';
import { isInNetwork, networkOf } from './addresses.ts';

test.each([
  ['10.1.2.3/16', '10.1.0.0/16'],
  ['10.1.2.3/8', '10.0.0.0/8'],
  ['192.168.1.130/25', '192.168.1.128/25'],
  ['10.0.0.7/31', '10.0.0.6/31'],
  ['10.0.0.7/0', '0.0.0.0/0'],
  ['fd00:0:0:1::7/64', 'fd00:0:0:1::/64'],
  ['2001:DB8::ffff:1/112', '2001:db8::ffff:0/112'],
  ['fd00::7/8', 'fd00::/8'],
  ['::1/127', '::/127'],
])('%s lies in %s', (cidr, network) => expect(networkOf(cidr)).toBe(network));

test.each(['10.0.0.7/32', 'fd00::7/128', '10.0.0.7', '10.0.0.7/', '10.0.0/8', 'eth0/8', ''])(
  '%j says nothing of others',
  (cidr) => expect(networkOf(cidr)).toBeNull(),
);

test.each([
  ['10.1.2.3', '10.1.0.0/16', true],
  ['10.1.2.3', '10.1.99.99/16', true],
  ['10.2.2.3', '10.1.0.0/16', false],
  ['fd00::7', 'fd00::/8', true],
  ['fd00::7', '0.0.0.0/0', false],
  ['10.1.2.3', '::/0', false],
  ['10.1.2.3', '10.1.0.0/33', false],
  ['10.1.2.3', 'ib0', false],
  ['', '10.0.0.0/8', false],
])('%s in %s: %s', (address, network, isIn) => expect(isInNetwork(address, network)).toBe(isIn));
