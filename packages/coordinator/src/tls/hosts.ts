/** By which names and addresses a coordinator can be called. */
import type { NetworkInterfaceInfo } from 'node:os';

/** What the machine says of itself. */
export interface Machine {
  readonly hostname: string;
  readonly interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>;
}

/** Listening there means listening on every address. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** The host by which programs on this machine reach a server that listens on `host`. */
export function hostFromHere(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/**
 * Hosts to tell other machines, best first: what the operator advertises, the one listened on, then addresses before the
 * name of the machine, which others may not be able to look up.
 */
export function hostsForOthers(
  host: string,
  advertised: readonly string[],
  machine: Machine,
): readonly string[] {
  const own = isWildcard(host) ? [...outerAddresses(host, machine), machine.hostname] : [host];
  return [...new Set([...advertised, ...own])];
}

/** What a server certificate has to name: every host above, and those for callers on this machine. */
export function certifiedHosts(
  host: string,
  advertised: readonly string[],
  machine: Machine,
): readonly string[] {
  const everywhere = ['localhost', '127.0.0.1', '::1'];
  const listened = isWildcard(host) ? [] : [host];
  const outer = outerAddresses('::', machine);
  return [...new Set([...advertised, ...listened, machine.hostname, ...outer, ...everywhere])];
}

/** IPv4 first. Link-local addresses mean nothing without the name of an interface. */
function outerAddresses(host: string, { interfaces }: Machine): readonly string[] {
  const addresses = Object.values(interfaces)
    .flatMap((each) => each ?? [])
    .filter(({ internal, address }) => !internal && !/^(169\.254\.|fe[89ab][0-9a-f]:)/i.test(address));
  const of = (family: string) =>
    addresses.filter((each) => each.family === family).map(({ address }) => address);
  return host === '0.0.0.0' ? of('IPv4') : [...of('IPv4'), ...of('IPv6')];
}
