/** Reads the inventory: `-q -x`, `topo -m`, and `-L` where those two leave something open. */
import { emptyListing, type GpuListing, type GpuProblem } from '../gpuSource.ts';
import {
  devicesOf,
  type FoundCard,
  type ListedCard,
  needsList,
  parseList,
  usableCards,
  withListedIndexes,
} from './inventory.ts';
import { type NvidiaSmi, type SmiFailure, smiProblem } from './nvidiaSmi.ts';
import { deviceLinks, parseTopology, type TopologyMatrix } from './topo.ts';
import { parseSmiXml, type SmiLog, type XmlCard } from './xml.ts';

export interface Inventory {
  readonly listing: GpuListing;
  readonly cards: readonly FoundCard[];
  /** A call for all cards at once fails because of one of them. */
  readonly hasDeadCard: boolean;
}

export const emptySmiInventory: Inventory = {
  listing: emptyListing,
  cards: [],
  hasDeadCard: false,
};

/** No node has more; the search by number ends earlier, where there is no such card. */
const cardsMax = 64;

/** @param last what was found last time, and still holds where the driver as a whole gives no answer */
export async function readInventory(smi: NvidiaSmi, deadlineMs: number, last: Inventory): Promise<Inventory> {
  const reply = await smi.ask(['-q', '-x'], deadlineMs);
  const log = reply.kind === 'printed' ? parseSmiXml(reply.text) : null;
  if (log !== null) {
    const isWhole = log.attachedGpus === null || log.attachedGpus === log.cards.length;
    const cards = log.cards.map((card, position) => ({ card, index: isWhole ? position : null }));
    const missing = isWhole ? [] : [hiddenCards(log)];
    return assemble(smi, deadlineMs, { log, cards, problems: missing, hasDeadCard: false });
  }
  const failure = smi.failureOf(reply);
  switch (failure.scope) {
    case 'driver':
      // It does not show which cards there are.
      return { ...last, listing: { ...last.listing, problems: [failure.problem] } };
    case 'no_devices':
      return { ...emptySmiInventory, listing: { ...emptyListing, problems: [failure.problem] } };
    case 'card': {
      const search = await searchOneByOne(smi, deadlineMs, failure);
      if ('failure' in search)
        return { ...last, listing: { ...last.listing, problems: [search.failure.problem] } };
      // No card was shown at all: it does not show which others there are.
      if (search.cards.length === 0)
        return { ...last, listing: { ...last.listing, problems: search.problems }, hasDeadCard: true };
      return assemble(smi, deadlineMs, search);
    }
    default: {
      const never: never = failure;
      return never;
    }
  }
}

interface Search {
  /** Of the first card that answered; null: none did. */
  readonly log: SmiLog | null;
  readonly cards: readonly { readonly card: XmlCard; readonly index: number | null }[];
  readonly problems: readonly GpuProblem[];
  readonly hasDeadCard: boolean;
}

/** By number, until the program reports that there is no such card. */
async function searchOneByOne(
  smi: NvidiaSmi,
  deadlineMs: number,
  first: SmiFailure,
): Promise<Search | { readonly failure: SmiFailure }> {
  let log: SmiLog | null = null;
  const cards: { readonly card: XmlCard; readonly index: number }[] = [];
  const dead: GpuProblem[] = [];
  for (let index = 0; index < cardsMax; index++) {
    const reply = await smi.ask(['-q', '-x', '-i', String(index)], deadlineMs);
    const answer = reply.kind === 'printed' ? parseSmiXml(reply.text) : null;
    const card = answer?.cards[0];
    if (card !== undefined) {
      log ??= answer;
      cards.push({ card, index });
      continue;
    }
    const failure = smi.failureOf(reply);
    if (failure.scope === 'no_devices') break;
    if (failure.scope === 'driver') return { failure };
    // The same card whichever is asked for: the dead one keeps this nvidia-smi from showing any.
    if (dead.some(({ evidence }) => evidence === failure.problem.evidence)) break;
    dead.push(failure.problem);
  }
  return { log, cards, problems: dead.length === 0 ? [first.problem] : dead, hasDeadCard: true };
}

async function assemble(smi: NvidiaSmi, deadlineMs: number, search: Search): Promise<Inventory> {
  const { found, problems } = usableCards(search.cards);
  const list = needsList(found) ? await readList(smi, deadlineMs) : { cards: [], problems: [] };
  const cards = withListedIndexes(found, list.cards);
  const topology = cards.length > 0 ? await readTopology(smi, deadlineMs) : { topology: null, problems: [] };

  const affinities = topology.topology?.affinities ?? new Map<number, never>();
  const devices = cards.map((card) => devicesOf(card, list.cards, affinities));
  const uuidsByIndex = new Map(
    cards.flatMap(({ index, uuid }) => (index === null ? [] : [[index, uuid] as const])),
  );
  return {
    listing: {
      gpus: devices.flatMap(({ gpus }) => gpus),
      driverVersion: search.log?.driverVersion ?? null,
      cudaVersion: search.log?.cudaVersion ?? null,
      links: topology.topology === null ? [] : deviceLinks(topology.topology, uuidsByIndex),
      problems: [
        ...search.problems,
        ...problems,
        ...list.problems,
        ...topology.problems,
        ...devices.flatMap((each) => each.problems),
      ],
    },
    cards,
    hasDeadCard: search.hasDeadCard,
  };
}

async function readList(
  smi: NvidiaSmi,
  deadlineMs: number,
): Promise<{ readonly cards: readonly ListedCard[]; readonly problems: readonly GpuProblem[] }> {
  const reply = await smi.ask(['-L'], deadlineMs);
  const cards = reply.kind === 'printed' ? parseList(reply.text) : [];
  return { cards, problems: cards.length > 0 ? [] : [smi.failureOf(reply).problem] };
}

async function readTopology(
  smi: NvidiaSmi,
  deadlineMs: number,
): Promise<{ readonly topology: TopologyMatrix | null; readonly problems: readonly GpuProblem[] }> {
  const reply = await smi.ask(['topo', '-m'], deadlineMs);
  if (reply.kind === 'no_answer') return { topology: null, problems: [reply.problem] };
  const topology = parseTopology(reply.text);
  if (topology === null) {
    // Some systems have no topology to show, and report that by the exit status: that is no fault of any card.
    return { topology, problems: reply.status === 0 ? [smi.unreadable(reply)] : [] };
  }
  const [refused] = topology.refused;
  if (refused === undefined) return { topology, problems: [] };
  const message =
    'Part of what nvidia-smi topo -m prints on this node was not understood, and those links are missing; run it there by hand.';
  return { topology, problems: [smiProblem('unreadable', message, refused)] };
}

function hiddenCards({ attachedGpus, cards }: SmiLog): GpuProblem {
  const counts = `${attachedGpus} GPUs attached, ${cards.length} described`;
  return smiProblem(
    'lost',
    `The NVIDIA driver of this node counts other GPUs than it shows (${counts}); look for Xid 79 in the kernel log.`,
    counts,
  );
}
