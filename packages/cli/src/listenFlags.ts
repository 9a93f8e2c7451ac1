/** Flags about being reached from other machines. */
import { isIP } from 'node:net';
import { usageError } from './errors.ts';

/** A host alone; the port is another flag. */
export function listenHost(typed: string): string {
  const host = withoutBrackets(typed);
  if (isHost(host)) return host;
  throw usageError(
    `--listen takes an address of this machine without a port, such as 0.0.0.0; got "${typed}"`,
  );
}

/** One name or address of this machine more, without a port: it is the one that is listened on. */
export function advertisedHosts(typed: string, earlier: readonly string[] | undefined): readonly string[] {
  const host = withoutBrackets(typed);
  if (isHost(host)) return [...(earlier ?? []), host];
  throw usageError(`--advertise takes a name or an address without a port, such as gpu-head; got "${typed}"`);
}

function withoutBrackets(typed: string): string {
  return /^\[(.+)\]$/.exec(typed)?.[1] ?? typed;
}

function isHost(text: string): boolean {
  return isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(text);
}
