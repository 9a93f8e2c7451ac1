/** `host:port` as people write it, and which hosts stay on this machine. */
export interface Address {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  /** 0..65535. */
  readonly port: number;
}

/** @returns null for text that is not `host:port`: `127.0.0.1:7070`, `node-1.lan:7070`, `[::1]:7070` */
export function parseAddress(text: string): Address | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text);
  const [, ipv6, name, digits] = match ?? [];
  const host = ipv6 ?? name;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? null : { host, port };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What is sent to it never leaves this machine, so it needs no encryption. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
