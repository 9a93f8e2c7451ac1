/** Where other nodes reach this one, and by which interface. */
import type { Nic, RdmaDevice } from '@muster/common/hardware';

/** `host:port` or a host alone, all the ways to say "this machine". */
const onLoopback = /^(?:127\.|localhost(?::|$)|\[::1\]|::1$)/i;

/** VPNs: the only way to some rented machines. Every other virtual interface leads to containers of this node. */
const vpn = /^(?:(?:wg|wt|tun|ppp|tailscale|nebula|netbird)(?:$|[-_.\d])|zt[a-z0-9]{8})/;

/**
 * Addresses that other nodes may reach this one at, best first: IPv4 before IPv6, then interfaces of an active RDMA
 * device, then known links, then the fastest; those of a VPN last. None of interfaces that are down, of container
 * networks, and none that are link-local.
 *
 * With a coordinator on loopback every node is this machine, and loopback is the one address.
 *
 * @param coordinatorAddress `host:port`
 */
export function nodeAddresses(
  nics: readonly Nic[],
  rdmaDevices: readonly RdmaDevice[],
  coordinatorAddress: string,
): readonly string[] {
  if (onLoopback.test(coordinatorAddress)) return ['127.0.0.1'];
  const withRdma = new Set(rdmaDevices.filter(({ state }) => state === 'ACTIVE').map(({ nic }) => nic));
  const rank = (nic: Nic) => [
    nic.isVirtual ? 1 : 0,
    withRdma.has(nic.name) ? 0 : 1,
    nic.state === 'up' ? 0 : 1,
    -(nic.speedMbps ?? 0),
  ];
  const ordered = nics
    .filter((nic) => nic.state !== 'down' && (!nic.isVirtual || vpn.test(nic.name)))
    .map((nic) => ({ nic, rank: rank(nic) }))
    .sort((a, b) => compareRanks(a.rank, b.rank) || compareNames(a.nic.name, b.nic.name))
    .flatMap(({ nic }) => nic.addresses)
    .filter((address) => !isLocalOnly(address));
  const isIpv6 = (address: string) => address.includes(':');
  return [
    ...new Set([...ordered.filter((each) => !isIpv6(each)), ...ordered.filter((each) => isIpv6(each))]),
  ];
}

/** For NCCL_SOCKET_IFNAME and the like. @returns null: no interface has this address */
export function networkInterfaceFor(address: string, nics: readonly Nic[]): string | null {
  if (/^(?:127\.|::1$)/.test(address)) return 'lo';
  return nics.find(({ addresses }) => addresses.includes(address))?.name ?? null;
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
