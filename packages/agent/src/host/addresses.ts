/** Where other nodes reach this one, and by which interface. */

import { BlockList, isIP } from 'node:net';
import type { Endpoint } from '@muster/common/gangs';
import type { Nic, RdmaDevice } from '@muster/common/hardware';
import type { InterfaceAddresses } from './nics.ts';

/** `host:port` or a host alone, all the ways to say "this machine". */
const onLoopback = /^(?:127\.|localhost(?::|$)|\[::1\]|::1$)/i;

/** VPNs: the only way to some rented machines. */
const vpn = /^(?:(?:wg|wt|tun|ppp|tailscale|nebula|netbird)(?:$|[-_.\d])|zt[a-z0-9]{8})/;

/** What leads to containers and virtual machines of a node, or nowhere. */
const ofContainers =
  /^(?:docker|br-|virbr|lxcbr|lxdbr|podman|cni|flannel|cali|cilium|weave|kube|nodelocaldns|tunl|sit|ip6tnl|dummy|ifb)/;

const loopback: Endpoint = {
  address: '127.0.0.1',
  network: '127.0.0.0/8',
  interface: 'lo',
  speedMbps: null,
  rdma: false,
};

/** What is known of a node's ways to others. */
export interface NodeNetwork {
  readonly nics: readonly Nic[];
  readonly rdmaDevices: readonly RdmaDevice[];
  /** Addresses with their prefixes, as the system lists them; may know less or more than `nics`. */
  readonly addresses: InterfaceAddresses;
}

/**
 * Where other nodes may reach this one, best first: IPv4 before IPv6, then interfaces of an active RDMA device, then
 * known links, then the fastest; those of a VPN last. None of interfaces that are down, of container networks, and none
 * that are link-local. A node without hardware of its own, which is a container, is reached by what it was given.
 *
 * With a coordinator on loopback every node is this machine, and loopback is the one address, unless a network is wanted.
 *
 * @param coordinatorAddress `host:port`
 * @param wanted a network (`10.1.0.0/16`) or an interface (`ib0`): nothing else counts. null: all
 */
export function nodeEndpoints(
  network: NodeNetwork,
  coordinatorAddress: string,
  wanted: string | null = null,
): readonly Endpoint[] {
  const isLocal = onLoopback.test(coordinatorAddress);
  if (isLocal && wanted === null) return [loopback];
  const all = [...(isLocal ? [loopback] : []), ...routableEndpoints(network)];
  return wanted === null ? all : all.filter((endpoint) => isWanted(endpoint, wanted));
}

/** The addresses alone. */
export function nodeAddresses(
  nics: readonly Nic[],
  rdmaDevices: readonly RdmaDevice[],
  coordinatorAddress: string,
): readonly string[] {
  const network = { nics, rdmaDevices, addresses: {} };
  return nodeEndpoints(network, coordinatorAddress).map(({ address }) => address);
}

/** In words, what a node that has no endpoint for a job lacks. @param all every endpoint that it has */
export function noEndpointMessage(node: string, wanted: string | null, all: readonly Endpoint[]): string {
  const has = all.map((each) => `${each.address} (${each.interface ?? 'interface unknown'})`).join(', ');
  if (wanted === null) {
    return `${node} has no address that other nodes could reach it at: give it one, or connect it to a network`;
  }
  const place = wanted.includes('/') ? `in the network ${wanted}` : `on an interface ${wanted}`;
  return (
    `${node} has no address ${place}; it has ${has === '' ? 'none' : has}: ` +
    'change `network` of the job, or the label `network` of the node'
  );
}

/** For NCCL_SOCKET_IFNAME and the like. @returns null: no interface has this address */
export function networkInterfaceFor(address: string, nics: readonly Nic[]): string | null {
  if (/^(?:127\.|::1$)/.test(address)) return 'lo';
  return nics.find(({ addresses }) => addresses.includes(address))?.name ?? null;
}

function routableEndpoints({ nics, rdmaDevices, addresses }: NodeNetwork): readonly Endpoint[] {
  const withRdma = new Set(rdmaDevices.filter(({ state }) => state === 'ACTIVE').map(({ nic }) => nic));
  const networks = networksByAddress(addresses);
  const up = nics.filter(({ state }) => state !== 'down');
  const hasHardware = up.some((nic) => !nic.isVirtual && nic.addresses.some((each) => !isLocalOnly(each)));
  const leadsOut = (nic: Nic) =>
    !nic.isVirtual || vpn.test(nic.name) || (!hasHardware && !ofContainers.test(nic.name));
  const rank = (nic: Nic) => [
    vpn.test(nic.name) ? 1 : 0,
    withRdma.has(nic.name) ? 0 : 1,
    nic.state === 'up' ? 0 : 1,
    -(nic.speedMbps ?? 0),
  ];
  const ordered = up
    .filter(leadsOut)
    .map((nic) => ({ nic, rank: rank(nic) }))
    .sort((a, b) => compareRanks(a.rank, b.rank) || compareNames(a.nic.name, b.nic.name))
    .flatMap(({ nic }) =>
      nic.addresses
        .filter((address) => !isLocalOnly(address))
        .map((address) => ({
          address,
          network: networks.get(address) ?? null,
          interface: nic.name,
          speedMbps: nic.speedMbps,
          rdma: withRdma.has(nic.name),
        })),
    );
  // The same address on two interfaces, as on a VLAN and its parent: once, on the better one.
  const once = ordered.filter(({ address }, index) => {
    return ordered.findIndex((each) => each.address === address) === index;
  });
  const isIpv6 = ({ address }: Endpoint) => address.includes(':');
  return [...once.filter((each) => !isIpv6(each)), ...once.filter(isIpv6)];
}

function networksByAddress(addresses: InterfaceAddresses): ReadonlyMap<string, string | null> {
  const all = Object.values(addresses).flatMap((each) => each ?? []);
  return new Map(all.map(({ address, cidr }) => [address, cidr === null ? null : networkOf(cidr)] as const));
}

function isWanted(endpoint: Endpoint, wanted: string): boolean {
  return wanted.includes('/') ? isInNetwork(endpoint.address, wanted) : endpoint.interface === wanted;
}

function isLocalOnly(address: string): boolean {
  return /^(?:127\.|169\.254\.|::1$|fe[89ab][0-9a-f]:)/i.test(address);
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** `eth2` before `eth10`. */
function compareNames(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true }) || (a < b ? -1 : 1);
}

// ---- Arithmetic on IP networks in CIDR notation, IPv4 and IPv6

/**
 * The network that an interface address lies in.
 * @param cidr an address with its prefix, `10.1.2.3/16`
 * @returns `10.1.0.0/16`, written the same on every node; null: it is no such text, or a route to one host, as clouds and
 *   VPNs hand out, which says nothing of who else can be reached
 */
export function networkOf(cidr: string): string | null {
  const [address = '', prefixText = ''] = cidr.split('/');
  const bits = bitsOf(address);
  if (bits === null || !/^\d{1,3}$/.test(prefixText)) return null;
  const prefix = Number(prefixText);
  if (prefix >= bits.length) return null;
  return `${addressOf(bits.slice(0, prefix).padEnd(bits.length, '0'))}/${prefix}`;
}

/** @param network `10.1.0.0/16`, `fd00::/8`; anything else holds no address */
export function isInNetwork(address: string, network: string): boolean {
  const [base = '', prefix = ''] = network.split('/');
  const family = isIP(base);
  if (family === 0 || isIP(address) !== family || !/^\d{1,3}$/.test(prefix)) return false;
  if (Number(prefix) > (family === 4 ? 32 : 128)) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(base, Number(prefix), type);
  return list.check(address, type);
}

/** @returns 32 or 128 digits */
function bitsOf(address: string): string | null {
  switch (isIP(address)) {
    case 4:
      return address.split('.').map(binary(10, 8)).join('');
    case 6: {
      // The parser of URLs writes every IPv6 address the same way; `::` stands for as many zeros as are missing.
      const text = new URL(`http://[${address.split('%', 1)[0] ?? ''}]`).hostname.slice(1, -1);
      const [head = '', tail] = text.split('::');
      const groups = (part: string) => (part === '' ? [] : part.split(':'));
      const missing = 8 - groups(head).length - groups(tail ?? '').length;
      const all = [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail ?? '')];
      return all.map(binary(16, 16)).join('');
    }
    default:
      return null;
  }
}

function binary(radix: number, width: number): (text: string) => string {
  return (text) => Number.parseInt(text, radix).toString(2).padStart(width, '0');
}

function addressOf(bits: string): string {
  const isIpv4 = bits.length === 32;
  const parts = bits.match(isIpv4 ? /.{8}/g : /.{16}/g) ?? [];
  const numbers = parts.map((part) => Number.parseInt(part, 2));
  if (isIpv4) return numbers.join('.');
  return new URL(`http://[${numbers.map((number) => number.toString(16)).join(':')}]`).hostname.slice(1, -1);
}
