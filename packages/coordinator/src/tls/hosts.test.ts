import type { NetworkInterfaceInfo } from 'node:os';
import { expect, test } from 'vitest';
import { certifiedHosts, hostFromHere, hostsForOthers, type Machine } from './hosts.ts';

function address(family: 'IPv4' | 'IPv6', text: string, internal = false): NetworkInterfaceInfo {
  const common = { address: text, netmask: '', mac: '', internal, cidr: null };
  return family === 'IPv4' ? { ...common, family } : { ...common, family, scopeid: 0 };
}

const machine: Machine = {
  hostname: 'gpu-head',
  interfaces: {
    lo: [address('IPv4', '127.0.0.1', true), address('IPv6', '::1', true)],
    eth0: [address('IPv6', '2001:db8::1'), address('IPv6', 'fe80::1'), address('IPv4', '192.0.2.1')],
    eth1: [address('IPv4', '169.254.1.1'), address('IPv4', '10.0.0.1')],
    eth2: undefined,
  },
};

test('others hear of what is advertised, then of every address that is served, then of the name', () => {
  expect(hostsForOthers('0.0.0.0', ['head.example.org'], machine)).toEqual([
    'head.example.org',
    '192.0.2.1',
    '10.0.0.1',
    'gpu-head',
  ]);
  expect(hostsForOthers('::', [], machine)).toEqual(['192.0.2.1', '10.0.0.1', '2001:db8::1', 'gpu-head']);
});

test('a server on one address tells that one', () => {
  expect(hostsForOthers('10.0.0.1', [], machine)).toEqual(['10.0.0.1']);
});

test('the certificate names all of it once, and this machine', () => {
  expect(certifiedHosts('10.0.0.1', ['gpu-head', 'head.example.org'], machine)).toEqual([
    'gpu-head',
    'head.example.org',
    '10.0.0.1',
    '192.0.2.1',
    '2001:db8::1',
    'localhost',
    '127.0.0.1',
    '::1',
  ]);
  expect(certifiedHosts('0.0.0.0', [], machine)).not.toContain('0.0.0.0');
});

test('programs on this machine need an address that can be dialled', () => {
  expect(['0.0.0.0', '::', '10.0.0.1', 'gpu-head', 'localhost'].map(hostFromHere)).toEqual([
    '127.0.0.1',
    '::1',
    '10.0.0.1',
    'gpu-head',
    'localhost',
  ]);
});
