/**
 * `nvidia-smi -L`:
 *
 *     GPU 0: NVIDIA H200 (UUID: GPU-5ab1c2d3-…)
 *       MIG 1g.18gb     Device  0: (UUID: MIG-0d9e8f7a-…)
 *
 * The only output that names the profiles and, in most versions, the UUIDs of MIG instances. It lists lost cards too.
 */
import { readUuid } from './cells.ts';

export interface ListedCard {
  readonly index: number;
  readonly uuid: string;
  readonly migDevices: readonly ListedMigDevice[];
}

export interface ListedMigDevice {
  /** Among the instances of its card, as in the XML. */
  readonly index: number;
  readonly uuid: string;
  /** `1g.18gb` */
  readonly profile: string;
}

const cardLine = /^GPU (\d{1,4}): .{0,200} \(UUID: ([^)]{1,100})\)\s*$/;
const migLine = /^\s+MIG (\S{1,40})\s+Device\s+(\d{1,4}):\s+\(UUID: ([^)]{1,100})\)\s*$/;

export function parseList(text: string): readonly ListedCard[] {
  const cards: (ListedCard & { readonly migDevices: ListedMigDevice[] })[] = [];
  for (const line of text.split('\n')) {
    const card = cardLine.exec(line);
    const cardUuid = readUuid(card?.[2]);
    if (card !== null && cardUuid !== null) {
      cards.push({ index: Number(card[1]), uuid: cardUuid, migDevices: [] });
      continue;
    }
    const mig = migLine.exec(line);
    const migUuid = readUuid(mig?.[3]);
    if (mig?.[1] === undefined || migUuid === null) continue;
    cards.at(-1)?.migDevices.push({ index: Number(mig[2]), uuid: migUuid, profile: mig[1] });
  }
  return cards;
}
