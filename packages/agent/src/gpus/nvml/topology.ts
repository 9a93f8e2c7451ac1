/** How the cards are connected, in the terms of `nvidia-smi topo -m`. */
import type { DeviceLink } from '@muster/common/hardware';
import type { Calls } from './calls.ts';
import { type NvmlCard, pciKey } from './enumerate.ts';

const linksMax = 36;
const isActive = 1;
const remoteIsSwitch = 2;

/** An NVLink of a card that is up. */
export interface NvLink {
  readonly number: number;
  /** Where it ends: at a switch, at the card with this key, or nobody knows where. */
  readonly remote: 'switch' | { readonly pciKey: string } | null;
}

/** @returns the links of each card, in the order of the cards */
export function readNvLinks(calls: Calls, cards: readonly NvmlCard[]): readonly (readonly NvLink[])[] {
  return cards.map((card) => {
    calls.begin(card.index);
    const links: NvLink[] = [];
    for (let number = 0; number < linksMax; number += 1) {
      const state = calls.u32('nvmlDeviceGetNvLinkState', card.handle, number);
      // A number past the last one is refused, as is any on a card without NVLink.
      if (state === null) break;
      if (state === isActive) links.push({ number, remote: readRemote(calls, card.handle, number) });
    }
    return links;
  });
}

function readRemote(calls: Calls, handle: number, link: number): NvLink['remote'] {
  if (calls.u32('nvmlDeviceGetNvLinkRemoteDeviceType', handle, link) === remoteIsSwitch) return 'switch';
  return calls.run('nvmlDeviceGetNvLinkRemotePciInfo_v2', handle, link, calls.out)
    ? { pciKey: pciKey(calls.out) }
    : null;
}

/** nvmlGpuTopologyLevel_t. Two GPUs of one board are as near as PCIe can show. */
const ancestors: Readonly<Record<number, string>> = {
  0: 'PIX',
  10: 'PIX',
  20: 'PXB',
  30: 'PHB',
  40: 'NODE',
  50: 'SYS',
};

/** Each pair once; a pair of which nothing is known is excluded. */
export function readLinks(
  calls: Calls,
  cards: readonly NvmlCard[],
  nvLinks: readonly (readonly NvLink[])[],
): readonly DeviceLink[] {
  return cards.flatMap((one, index) =>
    cards.slice(index + 1).flatMap((other, offset) => {
      const bonded = bondedLinks(nvLinks[index] ?? [], nvLinks[index + 1 + offset] ?? [], other);
      const kind = bonded > 0 ? `NV${bonded}` : readAncestor(calls, one, other);
      return kind === null ? [] : [{ from: one.uuid, to: other.uuid, kind }];
    }),
  );
}

/** Through switches every card reaches every other with all of its links. */
function bondedLinks(one: readonly NvLink[], other: readonly NvLink[], otherCard: NvmlCard): number {
  const direct = one.filter(
    ({ remote }) => remote !== null && remote !== 'switch' && remote.pciKey === otherCard.pciKey,
  ).length;
  const toSwitch = (links: readonly NvLink[]) => links.filter(({ remote }) => remote === 'switch').length;
  return Math.max(direct, Math.min(toSwitch(one), toSwitch(other)));
}

function readAncestor(calls: Calls, one: NvmlCard, other: NvmlCard): string | null {
  calls.begin(one.index);
  const level = calls.u32('nvmlDeviceGetTopologyCommonAncestor', one.handle, other.handle);
  return level === null ? null : (ancestors[level] ?? null);
}
