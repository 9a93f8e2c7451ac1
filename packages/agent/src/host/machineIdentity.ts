/** What tells this machine from another one that has a copy of its disk. */
import { existsSync, readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { tryReadKernelFile } from './kernelFiles.ts';

interface HostIdentity {
  readonly hostName: string;
  /** Null if the agent's user may not read it, or there is none. */
  readonly firmwareUuid: string | null;
  /** Hardware addresses of network cards. Virtual interfaces have none of their own, and get others at each start. */
  readonly cardAddresses: readonly string[];
}

/** UUIDs that makers leave in place of one: they tell no machine from another. */
const meaningless = /^(0[0-]*|f[f-]*|03000200-0400-0500-0006-000700080009)$/;
const cardsMax = 256;

/** @param sys where the kernel's files are */
export function readMachineIdentity(sys = '/sys'): HostIdentity {
  const uuid = tryReadKernelFile(join(sys, 'class/dmi/id/product_uuid'))?.trim().toLowerCase() ?? '';
  return {
    hostName: hostname(),
    firmwareUuid: uuid === '' || meaningless.test(uuid) ? null : uuid.slice(0, 64),
    cardAddresses: cardAddresses(join(sys, 'class/net')),
  };
}

function cardAddresses(net: string): readonly string[] {
  let names: readonly string[];
  try {
    names = readdirSync(net);
  } catch {
    return [];
  }
  const addresses = names
    .filter((name) => existsSync(join(net, name, 'device')))
    .map((name) => {
      // A card in a bond shows the address of the bond.
      const own = tryReadKernelFile(join(net, name, 'bonding_slave/perm_hwaddr'));
      return (own ?? tryReadKernelFile(join(net, name, 'address')) ?? '').trim().toLowerCase();
    });
  return [...new Set(addresses)]
    .filter((each) => /[1-9a-f]/.test(each))
    .sort()
    .slice(0, cardsMax);
}
