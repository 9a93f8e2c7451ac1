/** From the XML, `-L` and `topo -m` to the devices that tasks can be given. */
import type { Gpu } from '@muster/common/hardware';
import type { GpuProblem } from '../gpuSource.ts';
import { readUuid } from './cells.ts';
import type { CardAffinity } from './topo.ts';
import { problemsOfCard, type XmlCard, type XmlMigDevice } from './xml.ts';

/**
 * A card of `nvidia-smi -L`, the only output that names the profiles and, in most versions, the UUIDs of MIG instances:
 *
 *     GPU 0: NVIDIA H200 (UUID: GPU-5ab1c2d3-…)
 *       MIG 1g.18gb     Device  0: (UUID: MIG-0d9e8f7a-…)
 */
export interface ListedCard {
  readonly index: number;
  readonly uuid: string;
  readonly migDevices: readonly ListedMigDevice[];
}

interface ListedMigDevice {
  /** Among the instances of its card, as in the XML. */
  readonly index: number;
  readonly uuid: string;
  /** `1g.18gb` */
  readonly profile: string;
}

const cardLine = /^GPU (\d{1,4}): .{0,200} \(UUID: ([^)]{1,100})\)\s*$/;
const migLine = /^\s+MIG (\S{1,40})\s+Device\s+(\d{1,4}):\s+\(UUID: ([^)]{1,100})\)\s*$/;

/** The output lists lost cards, too. */
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

/** A card of the document that can be used, with what other outputs add. */
export interface FoundCard {
  readonly card: XmlCard;
  readonly uuid: string;
  /** The driver's number of it; null: not known. */
  readonly index: number | null;
}

export interface FoundCards {
  readonly found: readonly FoundCard[];
  readonly problems: readonly GpuProblem[];
}

/** Leaves out lost cards, and those that cannot be distinguished. */
export function usableCards(
  cards: readonly { readonly card: XmlCard; readonly index: number | null }[],
): FoundCards {
  const found: FoundCard[] = [];
  const problems: GpuProblem[] = [];
  for (const { card, index } of cards) {
    const ofCard = problemsOfCard(card);
    problems.push(...ofCard);
    if (ofCard.some(({ kind }) => kind === 'lost')) continue;
    const { uuid } = card;
    if (uuid === null || found.some((other) => other.uuid === uuid)) {
      problems.push(unidentified(card, uuid === null ? 'no UUID' : `UUID ${uuid} a second time`));
      continue;
    }
    found.push({ card, uuid, index });
  }
  return { found, problems };
}

function unidentified(card: XmlCard, evidence: string): GpuProblem {
  return {
    kind: 'unreadable',
    gpuUuid: null,
    pciBusId: card.pciBusId,
    message:
      `The GPU at ${card.pciBusId ?? 'an unknown address'} has no UUID of its own and cannot be given to tasks; ` +
      'update the NVIDIA driver of this node.',
    evidence,
  };
}

/** Whether `-L` has to be asked: it alone names the profiles of MIG instances, and numbers cards when one is missing. */
export function needsList(cards: readonly FoundCard[]): boolean {
  return cards.some(({ card, index }) => index === null || (card.migEnabled && card.migDevices.length > 0));
}

export function withListedIndexes(
  cards: readonly FoundCard[],
  list: readonly ListedCard[],
): readonly FoundCard[] {
  return cards.map((each) => ({
    ...each,
    index: each.index ?? list.find(({ uuid }) => uuid === each.uuid)?.index ?? null,
  }));
}

export interface Devices {
  /** The card itself, or its instances when it is in MIG mode. */
  readonly gpus: readonly Gpu[];
  readonly problems: readonly GpuProblem[];
}

export function devicesOf(
  found: FoundCard,
  list: readonly ListedCard[],
  affinities: ReadonlyMap<number, CardAffinity>,
): Devices {
  const { card, uuid, index } = found;
  const affinity = index === null ? undefined : affinities.get(index);
  const whole: Gpu = {
    uuid,
    model: card.model,
    memoryMb: card.memoryMb,
    simulated: false,
    index,
    pciBusId: card.pciBusId,
    numaNode: affinity?.numaNode ?? null,
    cpuAffinity: affinity?.cpuAffinity ?? null,
    serial: card.serial,
    mig: null,
  };
  if (!card.migEnabled) return { gpus: [whole], problems: [] };
  if (card.migDevices.length === 0) return { gpus: [], problems: [undivided(found)] };

  const gpus: Gpu[] = [];
  const nameless: XmlMigDevice[] = [];
  for (const device of card.migDevices) {
    const name = migName(uuid, device, list);
    if (name === null || gpus.some((gpu) => gpu.uuid === name.uuid)) {
      nameless.push(device);
      continue;
    }
    const { gpuInstanceId, computeInstanceId, memoryMb } = device;
    const mig = { parentUuid: uuid, profile: name.profile, gpuInstanceId, computeInstanceId };
    gpus.push({ ...whole, uuid: name.uuid, memoryMb, mig });
  }
  return { gpus, problems: nameless.map((device) => namelessInstance(found, device)) };
}

/** null: neither the XML nor `-L` names the instance. */
export function migName(
  cardUuid: string,
  device: XmlMigDevice,
  list: readonly ListedCard[],
): { readonly uuid: string; readonly profile: string } | null {
  const listed = list
    .find(({ uuid }) => uuid === cardUuid)
    ?.migDevices.find(({ index }) => index === device.index);
  const uuid = device.uuid ?? listed?.uuid;
  if (uuid === undefined || listed === undefined) return null;
  return { uuid, profile: listed.profile };
}

function undivided({ card, uuid }: FoundCard): GpuProblem {
  return {
    kind: 'no_instances',
    gpuUuid: uuid,
    pciBusId: card.pciBusId,
    message:
      `The GPU at ${card.pciBusId ?? uuid} is in MIG mode and has no instances; make some with ` +
      '`nvidia-smi mig -cgi`, or turn MIG off.',
    evidence: 'MIG mode is on, no instance is listed',
  };
}

function namelessInstance({ card, uuid }: FoundCard, device: XmlMigDevice): GpuProblem {
  return {
    kind: 'unreadable',
    gpuUuid: uuid,
    pciBusId: card.pciBusId,
    message:
      `Instance ${device.index} of the GPU at ${card.pciBusId ?? uuid} is not listed by nvidia-smi -L and cannot be ` +
      'given to tasks; compare `nvidia-smi -L` with `nvidia-smi mig -lci` on this node.',
    evidence: `GPU instance ${device.gpuInstanceId}, compute instance ${device.computeInstanceId}`,
  };
}
