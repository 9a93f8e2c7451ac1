/** `10.1.0.0/16`, `fd00::/8`, `ib0`: what a gang may be told to talk over. */

/** The form alone, for editors. */
export const networkPattern =
  /^(?:\d{1,3}(?:\.\d{1,3}){3}\/\d{1,2}|[0-9a-fA-F:.]{2,45}\/\d{1,3}|[A-Za-z][A-Za-z0-9._@-]{0,14})$/;
export const networkForm = 'a network such as 10.1.0.0/16, or an interface such as ib0';

/** An interface, or a network that is one: with an address that exists and, of IPv4, no bits behind its prefix. */
export function isNetwork(text: string): boolean {
  const [address = '', prefix] = text.split('/');
  if (prefix === undefined || networkOfAddress(text) === text) return true;
  return URL.canParse(`http://[${address}]`) && Number(prefix) <= 128;
}

/** `10.1.2.3/16` → `10.1.0.0/16`; null for what is no IPv4 address with a prefix. */
export function networkOfAddress(text: string): string | null {
  const [, address = '', prefix = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text) ?? [];
  const parts = address.split('.').map(Number);
  const bits = Number(prefix);
  if (prefix === '' || bits > 32 || parts.some((part) => part > 255)) return null;
  const value = parts.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - bits);
  const first = Math.floor(value / size) * size;
  return `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${bits}`;
}
