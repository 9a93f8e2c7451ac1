import type { Endpoint } from '@muster/common/gangs';
import { describe, expect, it } from 'vitest';
import { anAttempt, anEndpoint, aTask } from '../modelFixture.ts';
import { chooseNetwork, networkChoices, pathCheckOf, preflightTimeoutMs } from './network.ts';

const at = (address: string, network: string | null, fields: Partial<Endpoint> = {}) =>
  anEndpoint({ address, network, ...fields });
const slow = (rank: number, fields: Partial<Endpoint> = {}) =>
  at(`10.0.0.${rank}`, '10.0.0.0/16', { speedMbps: 1_000, ...fields });
const fast = (rank: number, fields: Partial<Endpoint> = {}) =>
  at(`10.1.0.${rank}`, '10.1.0.0/16', { speedMbps: 100_000, ...fields });
const six = (rank: number) => at(`fd00::${rank}`, 'fd00::/64', { speedMbps: 1_000 });
const bridge = () => at('172.17.0.1', '172.17.0.0/16', { speedMbps: 10_000 });
const loopback = () => at('127.0.0.1', '127.0.0.0/8');

describe('the choices of a network', () => {
  it.each<[string, Endpoint[][], string[][]]>([
    [
      'the fastest first',
      [
        [slow(1), fast(1)],
        [slow(2), fast(2)],
      ],
      [
        ['10.1.0.1', '10.1.0.2'],
        ['10.0.0.1', '10.0.0.2'],
      ],
    ],
    [
      'the fastest by its slowest link',
      [
        [slow(1), fast(1)],
        [slow(2), fast(2, { speedMbps: 100 })],
      ],
      [
        ['10.0.0.1', '10.0.0.2'],
        ['10.1.0.1', '10.1.0.2'],
      ],
    ],
    [
      'RDMA before speed',
      [
        [fast(1), slow(1, { rdma: true })],
        [fast(2), slow(2, { rdma: true })],
      ],
      [
        ['10.0.0.1', '10.0.0.2'],
        ['10.1.0.1', '10.1.0.2'],
      ],
    ],
    [
      'RDMA only where every node has it',
      [
        [fast(1), slow(1, { rdma: true })],
        [fast(2), slow(2)],
      ],
      [
        ['10.1.0.1', '10.1.0.2'],
        ['10.0.0.1', '10.0.0.2'],
      ],
    ],
    [
      'a known speed before an unknown one',
      [
        [slow(1, { speedMbps: null }), fast(1)],
        [slow(2), fast(2)],
      ],
      [
        ['10.1.0.1', '10.1.0.2'],
        ['10.0.0.1', '10.0.0.2'],
      ],
    ],
    [
      'of equal ones what the nodes prefer',
      [
        [six(1), slow(1)],
        [six(2), slow(2)],
      ],
      [
        ['fd00::1', 'fd00::2'],
        ['10.0.0.1', '10.0.0.2'],
      ],
    ],
    [
      'IPv4 where they do not agree',
      [
        [six(1), slow(1)],
        [slow(2), six(2)],
      ],
      [
        ['10.0.0.1', '10.0.0.2'],
        ['fd00::1', 'fd00::2'],
      ],
    ],
    ['only networks that all are in', [[slow(1), fast(1)], [slow(2)]], [['10.0.0.1', '10.0.0.2']]],
    ['routers where there is none', [[slow(1)], [fast(2)]], [['10.0.0.1', '10.1.0.2']]],
    ['routers where networks are unknown', [[at('a', null)], [at('b', null)]], [['a', 'b']]],
    [
      'an address that is the same everywhere last',
      [
        [bridge(), slow(1)],
        [bridge(), slow(2)],
      ],
      [
        ['10.0.0.1', '10.0.0.2'],
        ['172.17.0.1', '172.17.0.1'],
      ],
    ],
    [
      'routers before an address that is the same everywhere',
      [
        [slow(1), bridge()],
        [fast(2), bridge()],
      ],
      [
        ['10.0.0.1', '10.1.0.2'],
        ['172.17.0.1', '172.17.0.1'],
      ],
    ],
    ['loopback for agents of one machine', [[loopback()], [loopback()]], [['127.0.0.1', '127.0.0.1']]],
    ['none when a node has no address', [[slow(1)], []], []],
  ])('are %s', (_, endpoints, choices) => {
    expect(networkChoices(endpoints)).toEqual(choices);
  });

  it('do not depend on which of the ranks is which', () => {
    const endpoints = [
      [slow(1), fast(1)],
      [fast(2), slow(2)],
      [six(3), fast(3), slow(3)],
    ];
    const addresses = (ranks: number[]) =>
      networkChoices(ranks.map((rank) => endpoints[rank] ?? [])).map((choice) => [...choice].sort());
    expect(addresses([2, 0, 1])).toEqual(addresses([0, 1, 2]));
  });

  it('are tried one after the other, and then there is none', () => {
    const tasks = [1, 2].map((rank) => aTask(rank - 1, { endpoints: [slow(rank), fast(rank)] }));
    const first = chooseNetwork(tasks, null, 1);
    expect(first).toEqual({ round: 1, addresses: ['10.1.0.1', '10.1.0.2'] });
    const second = chooseNetwork(tasks, first, 2);
    expect(second).toEqual({ round: 2, addresses: ['10.0.0.1', '10.0.0.2'] });
    expect(chooseNetwork(tasks, second, 3)).toBeNull();
  });
});

describe('what a node is to try', () => {
  const network = { round: 2, addresses: ['a', 'b', 'c'] };
  const master = { addr: 'a', port: 100 };
  const attempt = anAttempt(1, {
    master,
    network,
    tasks: [0, 1, 2].map((rank) => aTask(rank, { testPort: 100 + rank })),
  });

  it.each([
    [0, [[1, 'b', 101]]],
    [
      1,
      [
        [0, 'a', 100],
        [2, 'c', 102],
      ],
    ],
    [2, [[0, 'a', 100]]],
  ])('is the master’s port and the next rank’s: rank %i', (nodeRank, wanted) => {
    const peers = wanted.map(([rank, address, port]) => ({
      nodeRank: rank,
      node: `node-${Number(rank) + 1}`,
      address,
      port,
    }));
    expect(pathCheckOf(attempt, network, nodeRank)).toEqual({ ...network, peers, preflight: null });
  });

  it('is measured as well where the attempt asks for it', () => {
    const measured = { ...attempt, preflight: true };
    expect(pathCheckOf(measured, network, 1).preflight).toEqual({ master, timeoutMs: preflightTimeoutMs });
  });
});
