/** Arithmetic on IP networks in CIDR notation, IPv4 and IPv6. */
import { BlockList, isIP } from 'node:net';

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
