/** Picks lines from the output of a job, within bounds. */
import { StringDecoder } from 'node:string_decoder';
import { MusterError } from '@muster/common/errors';
import type { LogPiece } from '@muster/common/views';
import { brief } from './size.ts';

export interface LogLine {
  readonly rank: number;
  readonly text: string;
}

/** A line that is longer is cut: a progress bar may be one line of megabytes. */
const lineLengthMax = 400;

/** Output that is read for one answer; a search ends there. */
export const searchBytesMax = 32 * 1024 * 1024;

/** Collects the last lines that match, of the pieces as they arrive. Memory is bounded by the number of lines. */
export class LastLines {
  private readonly lines: LogLine[] = [];
  /** The beginning of the line that is being read, by rank. */
  private readonly open = new Map<number, string>();
  private readonly decoders = new Map<number, StringDecoder>();
  private readonly matches: (line: string) => boolean;
  private readonly linesMax: number;
  matched = 0;
  bytes = 0;

  constructor(linesMax: number, matches: (line: string) => boolean) {
    this.linesMax = linesMax;
    this.matches = matches;
  }

  feed({ nodeRank, data }: Pick<LogPiece, 'nodeRank' | 'data'>): void {
    this.bytes += data.byteLength;
    const decoder = this.decoders.get(nodeRank) ?? new StringDecoder('utf8');
    this.decoders.set(nodeRank, decoder);
    const text = (this.open.get(nodeRank) ?? '') + decoder.write(Buffer.from(data));
    // A carriage return begins the line again, as progress bars do.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.open.set(nodeRank, (lines.pop() ?? '').slice(-lineLengthMax * 10));
    for (const line of lines) this.take(nodeRank, line);
  }

  end(): readonly LogLine[] {
    for (const [rank, text] of this.open) if (text !== '') this.take(rank, text);
    this.open.clear();
    return this.lines;
  }

  private take(rank: number, line: string): void {
    if (!this.matches(line.slice(0, lineLengthMax * 10))) return;
    this.matched += 1;
    this.lines.push({ rank, text: brief(line, lineLengthMax) });
    if (this.lines.length > this.linesMax) this.lines.shift();
  }
}

/**
 * Whether a line contains what is searched for: words, with `*` for anything between them, in any case. It takes time in proportion to
 * the line whatever the pattern is, which regular expressions do not.
 * @throws {MusterError} `invalid`
 */
export function lineFilter(pattern: string | undefined): (line: string) => boolean {
  if (pattern === undefined) return () => true;
  const parts = pattern
    .toLowerCase()
    .split('*')
    .filter((part) => part !== '');
  if (parts.length === 0)
    throw new MusterError(
      'invalid',
      `grep: got "${brief(pattern, 40)}"; expected a text to search for, such as error or loss*nan`,
    );
  return (line) => {
    const lower = line.toLowerCase();
    let from = 0;
    for (const part of parts) {
      const at = lower.indexOf(part, from);
      if (at === -1) return false;
      from = at + part.length;
    }
    return true;
  };
}
