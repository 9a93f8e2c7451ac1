/** By which names a server may be called, and by which pages. Pure. */
import { isLoopbackHost } from '@muster/common/address';

/**
 * A web page can have a browser ask for any name that it has had resolve to an address of ours, and read the answer as its own; the
 * name stays in the header.
 * @param hosts names and addresses of this server, beside those of loopback
 */
export function isOwnName(hostHeader: string | undefined, hosts: readonly string[]): boolean {
  const host = hostOf(hostHeader ?? '');
  return isLoopbackHost(host) || hosts.some((each) => each.toLowerCase() === host);
}

/** @param origin what a browser says of the page that calls; undefined: it is no page */
export function isOwnOrigin(origin: string | undefined, hostHeader: string | undefined): boolean {
  return (
    origin === undefined || origin.replace(/^https?:\/\//, '').toLowerCase() === hostHeader?.toLowerCase()
  );
}

function hostOf(hostHeader: string): string {
  const host = /^(.+?)(?::\d{1,5})?$/.exec(hostHeader)?.[1] ?? '';
  return host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
}
