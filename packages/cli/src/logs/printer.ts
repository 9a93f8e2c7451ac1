/** The ways to show the pieces of a log: as the bytes they are, with rank prefixes, or as JSON lines. */
import type { Clock } from '@muster/common/clock';
import { createLineAssembler, type LineAssembler } from '@muster/common/logLines';
import type { LogPiece } from '@muster/common/views';
import type { Context } from '../context.ts';
import type { Output } from '../io.ts';
import { type Colours, coloursFor, type Style } from '../output/colours.ts';
import { jsonText } from '../output/json.ts';

import { createTerminalFilter, harmlessLine } from './terminalFilter.ts';

export interface LogPrinter {
  /** Resolves once the reader has taken it. */
  print(piece: LogPiece): Promise<void>;
  /** Nothing more will come: prints lines that never got their line end. */
  finish(): Promise<void>;
}

/** One rank: its output to the byte, as if it ran in this terminal. */
function rawPrinter(output: Output): LogPrinter {
  return {
    print: (piece) => (piece.data.length === 0 ? Promise.resolve() : output.write(piece.data)),
    finish: () => Promise.resolve(),
  };
}

/** One rank on a terminal. */
function filteredPrinter(output: Output): LogPrinter {
  const filter = createTerminalFilter();
  const write = (text: string) => (text === '' ? Promise.resolve() : output.write(text));
  return {
    print: (piece) => write(filter.push(piece.data)),
    finish: () => write(filter.finish()),
  };
}

/** Whole lines, each after what tells its rank. */
function prefixPrinter(
  output: Output,
  clock: Clock,
  raw: boolean,
  prefix: (rank: number) => string,
): LogPrinter {
  const lineEnd = Buffer.from('\n');
  const prefixes = new Map<number, Buffer>();
  const prefixOf = (rank: number) => {
    const known = prefixes.get(rank) ?? Buffer.from(prefix(rank));
    prefixes.set(rank, known);
    return known;
  };
  return linePrinter(output, clock, ({ nodeRank }, line) => [
    prefixOf(nodeRank),
    raw ? line : harmlessLine(line),
    lineEnd,
  ]);
}

/**
 * For people: one rank as it is, several with prefixes.
 * @param raw also on a terminal to the byte: whatever control sequences the job has printed act on it
 */
export function textPrinter(
  oneRank: boolean,
  { io, environment, clock }: Context,
  { raw = false }: { readonly raw?: boolean } = {},
): LogPrinter {
  const { stdout } = io;
  const toTheByte = raw || !stdout.isTerminal;
  if (!oneRank) {
    const colours = coloursFor(stdout, environment);
    return prefixPrinter(stdout, clock, toTheByte, (rank) => prefixText(rank, String(rank), colours));
  }
  return toTheByte ? rawPrinter(stdout) : filteredPrinter(stdout);
}

/** A job of an array. */
export interface MemberSource {
  readonly index: number;
  readonly jobId: string;
}

/** Whole lines of a job of an array, each after `[index] `, of further ranks after `[index:rank] `. @param raw as in `textPrinter` */
export function memberPrinter(
  { index }: MemberSource,
  { io, environment, clock }: Context,
  { raw }: { readonly raw: boolean },
): LogPrinter {
  const { stdout } = io;
  const colours = coloursFor(stdout, environment);
  return prefixPrinter(stdout, clock, raw || !stdout.isTerminal, (rank) =>
    prefixText(index, rank === 0 ? String(index) : `${index}:${rank}`, colours),
  );
}

/** One JSON object a line, as of a single job, with index and jobId. */
export function memberJsonPrinter(source: MemberSource, { io, clock }: Context): LogPrinter {
  return linePrinter(io.stdout, clock, ({ attempt, nodeRank }, line) => {
    const { index, jobId } = source;
    return [Buffer.from(`${jsonText({ index, jobId, attempt, nodeRank, line: line.toString('utf8') })}\n`)];
  });
}

/** One JSON object a line: attempt, nodeRank, line. Bytes that are no UTF-8 become U+FFFD. */
export function jsonPrinter(output: Output, clock: Clock): LogPrinter {
  return linePrinter(output, clock, ({ attempt, nodeRank }, line) => {
    return [Buffer.from(`${jsonText({ attempt, nodeRank, line: line.toString('utf8') })}\n`)];
  });
}

const rankStyles = ['cyan', 'yellow', 'green', 'magenta', 'blue'] as const satisfies readonly Style[];

/** @param number chooses the colour */
function prefixText(number: number, text: string, colours: Colours): string {
  const style = rankStyles[number % rankStyles.length] ?? 'cyan';
  // A line of another rank may have left a colour switched on.
  return `${colours.enabled ? '\x1b[0m' : ''}${colours[style](`[${text}]`)} `;
}

type Source = Pick<LogPiece, 'attempt' | 'nodeRank'>;

function linePrinter(
  output: Output,
  clock: Clock,
  format: (source: Source, line: Buffer) => readonly Buffer[],
): LogPrinter {
  const open = new Map<string, { readonly source: Source; readonly lines: LineAssembler }>();
  const write = async (source: Source, lines: readonly Buffer[]) => {
    if (lines.length > 0) await output.write(Buffer.concat(lines.flatMap((line) => format(source, line))));
  };
  return {
    async print(piece) {
      const { attempt, nodeRank } = piece;
      const key = `${attempt}.${nodeRank}`;
      const rank = open.get(key) ?? { source: { attempt, nodeRank }, lines: createLineAssembler() };
      open.set(key, rank);
      await write(rank.source, rank.lines.push(piece.data, clock.monotonicMs()));
      if (!piece.complete) return;
      open.delete(key);
      await write(rank.source, rank.lines.finish());
    },
    async finish() {
      for (const { source, lines } of open.values()) await write(source, lines.finish());
      open.clear();
    },
  };
}
