/**
 * What the watchdogs of several ranks tell together. Each names the collective it has waited in: `WorkNCCL(SeqNum=1505766,
 * OpType=ALLGATHER, …`. Different ones: the ranks went different ways, which is the program's doing. The same one, and a rank
 * that says nothing: that rank never came. The same one on every rank: all have come, and the data did not.
 */
import type { Line } from '../words.ts';
import type { Verdict } from './finding.ts';

const work = /WorkNCCL\(SeqNum=(\d+), OpType=(\w+)/;
const inBrackets = /\[(?:PG (?:ID \S+ )?(?:PG )?GUID (\S+) )?Rank (\d+)\]/;
/** More ranks than this tell nothing new. */
const ranksMax = 8_192;

interface Wait {
  readonly sequence: number;
  readonly operation: string;
  /** Global. null: the line does not tell. */
  readonly globalRank: number | null;
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

  /** @param line of a watchdog. @returns the rank that waits; null: it does not tell */
  add({ text, rank }: Line): number | null {
    const [, group = '', inGroup] = inBrackets.exec(text) ?? [];
    const [, sequence, operation = ''] = work.exec(text) ?? [];
    // Before groups were named, the number in brackets was the global rank.
    const globalRank =
      rank ?? prefixed(text) ?? (group === '' && inGroup !== undefined ? Number(inGroup) : null);
    if (sequence === undefined || inGroup === undefined || this.waits >= ranksMax) return globalRank;
    const members = this.groups.get(group) ?? new Map<number, Wait>();
    this.groups.set(group, members);
    if (members.has(Number(inGroup))) return globalRank;
    this.waits += 1;
    members.set(Number(inGroup), { sequence: Number(sequence), operation, globalRank });
    return globalRank;
  }

  verdict(): Verdict {
    for (const members of this.groups.values()) {
      const waits = [...members.values()];
      const [first] = waits;
      const differs = ({ sequence, operation }: Wait) =>
        sequence !== first?.sequence || operation !== first.operation;
      if (waits.some(differs)) return desynchronised(members);
    }
    const [only] = this.groups.values();
    // Groups cannot be compared with each other, nor a rank with itself.
    if (only === undefined || this.groups.size > 1 || only.size < 2) return { blame: 'unknown' };
    const silent = this.silentRanks(only);
    if (silent.length === 1) return suspect(silent[0] ?? 0);
    return silent.length === 0 ? { blame: 'network', retry: 'same_node' } : { blame: 'unknown' };
  }

  /** Those between the first and the last rank that anything is known of; those beyond cannot be missed. */
  private silentRanks(members: ReadonlyMap<number, Wait>): readonly number[] {
    const waiting = new Set([...members].map(([inGroup, { globalRank }]) => globalRank ?? inGroup));
    const known = [...waiting, ...this.ranksSeen];
    const from = known.reduce((least, each) => Math.min(least, each));
    const to = known.reduce((most, each) => Math.max(most, each));
    const silent: number[] = [];
    for (let rank = from; rank <= to && silent.length < 2; rank += 1)
      if (!waiting.has(rank)) silent.push(rank);
    return silent;
  }
}

/** A launcher's prefix in the middle of a line: behind a progress bar. */
function prefixed(text: string): number | null {
  const match = /\[rank(\d+)\]:/.exec(text);
  return match === null ? null : Number(match[1]);
}

function desynchronised(members: ReadonlyMap<number, Wait>): Verdict {
  const where = [...members]
    .slice(0, 4)
    .map(([rank, { sequence, operation }]) => `rank ${rank} in ${operation} ${sequence}`)
    .join(', ');
  return {
    blame: 'job',
    retry: 'same_node',
    advice: `The ranks wait in different collectives (${where}): the program took different ways on them, by data of different length or an if on the rank.`,
  };
}

function suspect(rank: number): Verdict {
  return {
    blame: 'node',
    retry: 'other_node',
    advice: `All ranks waited for rank ${rank}, which says nothing: look at what it did last, and leave its node out if it happens again.`,
  };
}
