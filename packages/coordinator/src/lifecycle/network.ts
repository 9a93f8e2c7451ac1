/**
 * Chooses the addresses over which a gang communicates. Every node reports its addresses, but a choice is good only if all
 * nodes reach each other over it. No report proves that, so the choices are ordered here and the agents try them in turn
 * before the release.
 */
import type { Endpoint, PathCheck, Peer } from '@muster/common/gangs';
import type { Attempt, AttemptNetwork, Task } from '../model.ts';

/** One address for each node, by node rank. */
type Addresses = readonly string[];

/** From its beginning to its end: the program's start, a handshake, and a few seconds for the pairs. */
export const preflightTimeoutMs = 60_000;

/**
 * The next choice to try.
 * @param before what did not do; null: nothing has been tried with these endpoints
 * @param round of the attempt; it grows with each choice, so that findings about an earlier one count for nothing
 * @returns null when every choice has been tried
 */
export function chooseNetwork(
  tasks: readonly Task[],
  before: AttemptNetwork | null,
  round: number,
): AttemptNetwork | null {
  const choices = networkChoices(tasks.map((task) => task.endpoints));
  const tried = before === null ? -1 : choices.findIndex((each) => isSame(each, before.addresses));
  const addresses = choices[tried + 1];
  return addresses === undefined ? null : { round, addresses };
}

/**
 * Every choice worth a try, best first: networks that all nodes are in, by RDMA on every node, then by their slowest link,
 * then as the nodes prefer them, then IPv4 before IPv6. An address that two nodes share leads from a node to itself:
 * engines give one bridge the same address on every machine. Such choices come last, for agents that do share a machine.
 * @param endpoints of each node, best first
 */
export function networkChoices(endpoints: readonly (readonly Endpoint[])[]): readonly Addresses[] {
  const shared = sharedNetworks(endpoints).sort(byQuality);
  const apart = shared.filter(({ addresses }) => areApart(addresses));
  const together = shared.filter(({ addresses }) => !areApart(addresses));
  // Where there is no network that all are in, routers may lead from each one's own to the others'.
  const firsts = endpoints.flatMap(([first]) => first?.address ?? []);
  const routed = apart.length === 0 && firsts.length === endpoints.length ? [firsts] : [];
  const choices = [
    ...apart.map((each) => each.addresses),
    ...routed,
    ...together.map((each) => each.addresses),
  ];
  return choices.filter((each, index) => choices.findIndex((other) => isSame(other, each)) === index);
}

interface SharedNetwork {
  readonly network: string;
  readonly addresses: Addresses;
  readonly rdma: boolean;
  /** Of the slowest link; 0: unknown. */
  readonly speedMbps: number;
  /** Places from the top of the nodes' lists, all together. */
  readonly distance: number;
}

function sharedNetworks(endpoints: readonly (readonly Endpoint[])[]): SharedNetwork[] {
  const [first = []] = endpoints;
  const names = new Set(first.flatMap(({ network }) => network ?? []));
  return [...names].flatMap((network) => {
    const indices = endpoints.map((each) => each.findIndex((endpoint) => endpoint.network === network));
    const chosen = endpoints.flatMap((each, rank) => each[indices[rank] ?? -1] ?? []);
    if (chosen.length < endpoints.length) return [];
    return {
      network,
      addresses: chosen.map(({ address }) => address),
      rdma: chosen.every(({ rdma }) => rdma),
      speedMbps: Math.min(...chosen.map(({ speedMbps }) => speedMbps ?? 0)),
      distance: indices.reduce((sum, index) => sum + index, 0),
    };
  });
}

function byQuality(a: SharedNetwork, b: SharedNetwork): number {
  return (
    Number(b.rdma) - Number(a.rdma) ||
    b.speedMbps - a.speedMbps ||
    a.distance - b.distance ||
    Number(isIpv6(a)) - Number(isIpv6(b)) ||
    (a.network < b.network ? -1 : 1)
  );
}

function isIpv6({ addresses }: SharedNetwork): boolean {
  return addresses.some((address) => address.includes(':'));
}

function areApart(addresses: Addresses): boolean {
  return new Set(addresses).size === addresses.length;
}

function isSame(a: Addresses, b: Addresses): boolean {
  return a.length === b.length && a.every((address, rank) => address === b[rank]);
}

/**
 * What the node of this rank is to try: rank 0's master port, as the rendezvous will, and the next rank's test port, so
 * that every node is reached by another one too.
 * @param attempt one whose network is chosen
 */
export function pathCheckOf(attempt: Attempt, network: AttemptNetwork, nodeRank: number): PathCheck {
  const { master } = attempt;
  return {
    round: network.round,
    addresses: network.addresses,
    peers: peersOf(attempt, network, nodeRank),
    preflight: attempt.preflight && master !== null ? { master, timeoutMs: preflightTimeoutMs } : null,
  };
}

export function peersOf(attempt: Attempt, network: AttemptNetwork, nodeRank: number): readonly Peer[] {
  const { tasks, master } = attempt;
  const ranks = new Set([0, (nodeRank + 1) % tasks.length]);
  ranks.delete(nodeRank);
  return [...ranks].flatMap((rank) => {
    const task = tasks[rank];
    const port = rank === 0 ? master?.port : task?.testPort;
    const address = network.addresses[rank];
    if (task === undefined || address === undefined || port == null) return [];
    return { nodeRank: rank, node: task.node, address, port };
  });
}
