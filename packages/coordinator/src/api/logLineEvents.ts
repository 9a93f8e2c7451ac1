/**
 * Pieces of output as events, one for each line: the shape that `muster logs -o json` prints. The id of an event says how far each
 * rank has been told: `1.0=4096,1.1=512` is attempt 1, ranks 0 and 1.
 */
import { createLineAssembler, type LineAssembler } from '@muster/common/logLines';
import type { LogPiece } from '@muster/common/views';
import type { ReadPosition } from '../logs/readLogs.ts';
import { sseEvent } from './sseStream.ts';

/** With more ranks the id is long: only the last line of each piece has one then, and what follows it may come twice. */
const ranksOfLineIds = 8;
const positionsMax = 4_096;
const newline = 0x0a;

/** @returns null for text that is no such id */
export function positionsOf(id: string): readonly ReadPosition[] | null {
  const parts = id.split(',');
  if (parts.length > positionsMax) return null;
  const positions = parts.map((part) => {
    const match = /^(\d{1,9})\.(\d{1,9})=(\d{1,15})$/.exec(part);
    return match === null
      ? null
      : { attempt: Number(match[1]), nodeRank: Number(match[2]), offset: Number(match[3]) };
  });
  return positions.includes(null) ? null : (positions as readonly ReadPosition[]);
}

interface Rank {
  readonly attempt: number;
  readonly nodeRank: number;
  readonly assembler: LineAssembler;
}

export class LogLineEvents {
  private readonly ranks = new Map<string, Rank>();
  /** By attempt and rank: up to where its lines were made. */
  private readonly positions = new Map<string, number>();

  static resume(from: readonly ReadPosition[]): LogLineEvents {
    const events = new LogLineEvents();
    for (const { attempt, nodeRank, offset } of from) events.positions.set(`${attempt}.${nodeRank}`, offset);
    return events;
  }

  /** @param nowMs any clock: the states of a progress bar are told from time to time */
  of(piece: LogPiece, nowMs: number): string {
    const { attempt, nodeRank, offset, data, complete, missing } = piece;
    const key = `${attempt}.${nodeRank}`;
    if (missing !== null) return sseEvent(JSON.stringify({ attempt, nodeRank, missing }), null, 'missing');
    const rank = this.rankOf(key, attempt, nodeRank);
    const lines: string[] = [];
    const emit = (texts: readonly Buffer[], end: number | null) => {
      for (const [index, text] of texts.entries()) {
        const position = index === texts.length - 1 ? end : null;
        if (position !== null) this.positions.set(key, position);
        const id = position === null || !this.isWithId(position, offset + data.length) ? null : this.id();
        lines.push(sseEvent(JSON.stringify(lineOf(rank, text)), id));
      }
    };
    let start = 0;
    for (let end = data.indexOf(newline); end >= 0; end = data.indexOf(newline, start)) {
      emit(rank.assembler.push(data.subarray(start, end + 1), nowMs), offset + end + 1);
      start = end + 1;
    }
    if (start < data.length) emit(rank.assembler.push(data.subarray(start), nowMs), null);
    if (complete) emit(rank.assembler.finish(), offset + data.length);
    return lines.join('');
  }

  /** Lines without an end, when no more comes. */
  rest(): string {
    const lines = [...this.ranks.values()].flatMap((rank) =>
      rank.assembler.finish().map((text) => sseEvent(JSON.stringify(lineOf(rank, text)))),
    );
    return lines.join('');
  }

  private isWithId(position: number, pieceEnd: number): boolean {
    return this.positions.size <= ranksOfLineIds || position === pieceEnd;
  }

  private id(): string {
    return [...this.positions].map(([key, position]) => `${key}=${position}`).join(',');
  }

  private rankOf(key: string, attempt: number, nodeRank: number): Rank {
    const rank = this.ranks.get(key) ?? { attempt, nodeRank, assembler: createLineAssembler() };
    this.ranks.set(key, rank);
    return rank;
  }
}

function lineOf({ attempt, nodeRank }: Rank, line: Buffer) {
  return { attempt, nodeRank, line: line.toString('utf8') };
}
