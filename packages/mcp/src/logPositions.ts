/** How far the output of a workload has been read, as a text that callers pass back. Pure. */
import type { LogPiece } from '@muster/common/views';
import type { LogPosition } from '@muster/common/wire/client';

/** ATTEMPT:RANK=OFFSET,… */
export const sinceForm = /^\d{1,7}:\d{1,4}=\d{1,15}(?:,\d{1,4}=\d{1,15})*$/;

/** More ranks would take too much of an answer: they are read one by one. */
export const sinceRanksMax = 64;

export function logPositionsOf(since: string | undefined): readonly LogPosition[] {
  if (since === undefined) return [];
  const [attempt = '', ranks = ''] = since.split(':');
  return ranks.split(',').map((each) => {
    const [nodeRank, offset] = each.split('=');
    return { attempt: Number(attempt), nodeRank: Number(nodeRank), offset: Number(offset) };
  });
}

/** Follows the pieces of one attempt. A line that has no end yet counts as unread, so that it is read whole the next time. */
export class ReadPositions {
  private attempt: number | null;
  private readonly offsets: Map<number, number>;
  /** Behind the last byte that has arrived, by rank. */
  private readonly ends = new Map<number, number>();

  /** @param from where this reading has begun */
  constructor(from: readonly LogPosition[]) {
    this.attempt = from[0]?.attempt ?? null;
    this.offsets = new Map(from.map(({ nodeRank, offset }) => [nodeRank, offset]));
  }

  note({ attempt, nodeRank, offset, data, complete }: LogPiece): void {
    if (this.attempt !== attempt) {
      this.offsets.clear();
      this.ends.clear();
    }
    this.attempt = attempt;
    if (complete) {
      const end = this.ends.get(nodeRank);
      if (end !== undefined) this.offsets.set(nodeRank, end);
    }
    if (data.byteLength === 0) return;
    this.ends.set(nodeRank, offset + data.byteLength);
    const lineEnd = data.lastIndexOf(0x0a);
    if (lineEnd !== -1) this.offsets.set(nodeRank, offset + lineEnd + 1);
    else if (!this.offsets.has(nodeRank)) this.offsets.set(nodeRank, offset);
  }

  /** null: nothing was read, or of too many ranks. */
  text(): string | null {
    if (this.attempt === null || this.offsets.size === 0 || this.offsets.size > sinceRanksMax) return null;
    const ranks = [...this.offsets].sort(([a], [b]) => a - b);
    return `${this.attempt}:${ranks.map(([rank, offset]) => `${rank}=${offset}`).join(',')}`;
  }
}
