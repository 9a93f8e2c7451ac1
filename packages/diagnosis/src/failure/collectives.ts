/**
 * What follows from the reports of the watchdogs of several ranks. Each names the collective it has waited in: `WorkNCCL(SeqNum=1505766,
 * OpType=ALLGATHER, …`. Different ones: the ranks went different ways, which is the program's doing. The same one, and a rank
 * that reports nothing: that rank never came. The same one on every rank: all have come, and the data did not.
 *
 * A log may be one of many, or an excerpt. That every rank has reported is known only where the sizes of the collective show
 * how many there are; a rank without any line is missed only then.
 */
import type { Line } from '../model.ts';
import type { FailureVerdict } from './finding.ts';

/** PyTorch 1 prints no number, and the shape in place of sizes. */
const work =
  /WorkNCCL\((?:SeqNum=(\d{1,20}), )?OpType=(\w{1,60})(?:, TensorShape=(\[[\d, ]{0,100}\]))?(?:, NumelIn=(\d{1,20}), NumelOut=(\d{1,20}))?/;
const inBrackets =
  /\[(?:PG (?:(?:ID )?(?!GUID )(\S{1,100}) )?(?:(?:PG )?GUID (\S{1,100}) )?)?Rank (\d{1,9})\]/;
/** The group of all ranks, in which a rank is the global one. */
const ofAll = /^(?:|0|0\(default_pg\))$/;
/** More ranks than this show nothing new. */
const ranksMax = 8_192;

interface Wait {
  /** The identity of the collective. */
  readonly collective: string;
  /** As people read it. */
  readonly name: string;
  /** The global rank. null: the line does not have it. */
  readonly globalRank: number | null;
  /** The size of the group. null: the line does not show it. */
  readonly size: number | null;
}

export class Collectives {
  /** By process group, which number their collectives each for itself, and rank within it. */
  private readonly groups = new Map<string, Map<number, Wait>>();
  private readonly ranksSeen = new Set<number>();
  private waits = 0;

  /** Of any line: who takes part at all. */
  see(rank: number): void {
    if (this.ranksSeen.size < ranksMax) this.ranksSeen.add(rank);
  }

  /** @param line of a watchdog. @returns the rank that waits; null: unknown */
  add({ text, rank }: Line): number | null {
    const [, id = '', guid, inGroup] = inBrackets.exec(text) ?? [];
    const group = guid ?? id;
    const isOfAll = ofAll.test(group);
    const globalRank = rank ?? prefixed(text) ?? (isOfAll && inGroup !== undefined ? Number(inGroup) : null);
    const waited = waitIn(text, globalRank);
    if (waited === null || inGroup === undefined || this.waits >= ranksMax) return globalRank;
    const members = this.groups.get(group) ?? new Map<number, Wait>();
    this.groups.set(group, members);
    if (members.has(Number(inGroup))) return globalRank;
    this.waits += 1;
    members.set(Number(inGroup), waited);
    return globalRank;
  }

  verdict(): FailureVerdict {
    for (const members of this.groups.values()) {
      const waits = [...members.values()];
      const [first] = waits;
      if (waits.some(({ collective }) => collective !== first?.collective)) return desynchronised(members);
    }
    const [only] = this.groups;
    // Groups cannot be compared with each other, nor a rank with itself.
    if (only === undefined || this.groups.size > 1 || only[1].size < 2) return { blame: 'unknown' };
    const [group, members] = only;
    const size = members.values().next().value?.size ?? null;
    if (size === null) return this.verdictOfSeen(members);
    const missing = Array.from({ length: Math.min(size, ranksMax) }, (_, each) => each).filter(
      (each) => !members.has(each),
    );
    if (missing.length === 0) return { blame: 'network', retry: 'same_node' };
    return missing.length === 1 && ofAll.test(group) ? suspect(missing[0] ?? 0) : { blame: 'unknown' };
  }

  /** How many there are is not known: only a rank that has printed something, and does not wait, is a suspect. */
  private verdictOfSeen(members: ReadonlyMap<number, Wait>): FailureVerdict {
    const waiting = new Set([...members].map(([inGroup, { globalRank }]) => globalRank ?? inGroup));
    const silent = [...this.ranksSeen].filter((rank) => !waiting.has(rank));
    return silent.length === 1 ? suspect(silent[0] ?? 0) : { blame: 'unknown' };
  }
}

function waitIn(text: string, globalRank: number | null): Wait | null {
  const [, sequence, operation, shape, numelIn, numelOut] = work.exec(text) ?? [];
  if (operation === undefined) return null;
  const name = sequence === undefined ? operation : `${operation} ${sequence}`;
  const size = sizeOf(operation, Number(numelIn), Number(numelOut));
  const collective = sequence === undefined ? `${operation} ${shape ?? ''}` : name;
  return { collective, name, globalRank, size };
}

/** What is gathered is as many times as large as the part of a rank as there are ranks. */
function sizeOf(operation: string, numelIn: number, numelOut: number): number | null {
  const ratio = operation.includes('ALLGATHER')
    ? numelOut / numelIn
    : operation.includes('REDUCE_SCATTER')
      ? numelIn / numelOut
      : Number.NaN;
  return Number.isInteger(ratio) && ratio > 1 ? ratio : null;
}

/** A launcher's prefix in the middle of a line: behind a progress bar. */
function prefixed(text: string): number | null {
  const match = /\[rank(\d{1,9})\]:/.exec(text);
  return match === null ? null : Number(match[1]);
}

function desynchronised(members: ReadonlyMap<number, Wait>): FailureVerdict {
  const where = [...members]
    .slice(0, 4)
    .map(([rank, { name }]) => `rank ${rank} in ${name}`)
    .join(', ');
  return {
    blame: 'job',
    retry: 'same_node',
    advice: `The ranks wait in different collectives (${where}): the program took different paths on them: data of different length, or an if on the rank.`,
  };
}

function suspect(rank: number): FailureVerdict {
  return {
    blame: 'node',
    retry: 'other_node',
    advice: `All ranks waited for rank ${rank}, which reported nothing: check what it did last, and exclude its node if it happens again.`,
  };
}
