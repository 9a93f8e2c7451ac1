/**
 * Cuts the bytes of a program's output into lines, however the bytes arrive.
 *
 * Line ends are single bytes that no UTF-8 sequence contains, so bytes are cut first and decoded afterwards: a chunk that
 * ends within a character needs no care, and what is no UTF-8 at all spoils no more than its own line. Complete lines of a
 * chunk are decoded together, since a call per line costs more than reading it.
 */
import type { Line } from '../model.ts';

/** Longer than any line that somebody wrote to be read; what follows in such a line is not kept. */
const lineBytesMaxDefault = 64 * 1024;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

interface LineReaderOptions {
  /** At least 1. */
  readonly lineBytesMax?: number;
}

export class LineReader {
  private readonly onLine: (line: Line) => void;
  /** The beginning of a line whose end has not come yet. */
  private readonly begun: Buffer;
  private begunBytes = 0;
  private number = 1;
  /** Bytes that were fed before the present piece. */
  private before = 0;
  private piece: Buffer = Buffer.alloc(0);
  /** Line ends of the piece that stand before the one of the line that is being passed on. */
  private endsBefore = 0;
  /** Those that were looked for by now, where the last one of them is in the piece, and where to look for the next. */
  private endsFound = 0;
  private endAt = 0;
  private searchAt = 0;

  /** @param onLine called with every line that is not empty, in order, during `feed` and `end` */
  constructor(onLine: (line: Line) => void, { lineBytesMax = lineBytesMaxDefault }: LineReaderOptions = {}) {
    this.onLine = onLine;
    this.begun = Buffer.allocUnsafe(Math.max(1, lineBytesMax));
  }

  feed(bytes: Uint8Array): void {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    // Pieces no longer than a line may be: only a line that began in an earlier piece can be too long, and a chunk of any
    // size costs no more memory than a small one.
    const pieceBytes = this.begun.length;
    for (let from = 0; from < buffer.length; from += pieceBytes) {
      const piece = buffer.subarray(from, from + pieceBytes);
      this.beginPiece(piece);
      this.feedPiece(piece);
      this.before += piece.length;
    }
    // Nothing of it is needed any longer, and its owner may use it again.
    this.beginPiece(Buffer.alloc(0));
  }

  /**
   * Of the line that is being passed on: bytes from the first that was fed up to its end. Valid during `onLine` only; it
   * costs a look at the bytes since the line for which it was asked before.
   */
  get position(): number {
    while (this.endsFound <= this.endsBefore && this.searchAt < this.piece.length) {
      const byte = this.piece[this.searchAt];
      if (byte === lineFeed || byte === carriageReturn) {
        this.endAt = this.searchAt;
        this.endsFound += 1;
      }
      this.searchAt += 1;
    }
    return this.before + this.endAt;
  }

  /** The output is over: what has no line end is a line, too. */
  end(): void {
    this.finishBegun();
  }

  private beginPiece(piece: Buffer): void {
    this.piece = piece;
    this.endsBefore = 0;
    this.endsFound = 0;
    this.endAt = 0;
    this.searchAt = 0;
  }

  private feedPiece(piece: Buffer): void {
    let from = 0;
    if (this.begunBytes > 0) {
      const end = firstEnd(piece);
      this.begin(end === -1 ? piece : piece.subarray(0, end));
      if (end === -1) return;
      this.finishBegun();
      if (piece[end] === lineFeed) this.number += 1;
      this.endsBefore = 1;
      from = end + 1;
    }
    const last = Math.max(piece.lastIndexOf(lineFeed), piece.lastIndexOf(carriageReturn));
    if (last >= from) {
      this.passLines(piece.toString('utf8', from, last + 1));
      from = last + 1;
    }
    if (from < piece.length) this.begin(piece.subarray(from));
  }

  private begin(bytes: Buffer): void {
    this.begunBytes += bytes.copy(this.begun, this.begunBytes);
  }

  private finishBegun(): void {
    const text = this.begun.toString('utf8', 0, this.begunBytes);
    this.begunBytes = 0;
    this.pass(text);
  }

  /** @param text ends with a line end */
  private passLines(text: string): void {
    let feed = endAt(text, '\n', 0);
    let carriage = endAt(text, '\r', 0);
    for (let from = 0; from < text.length; ) {
      const end = Math.min(feed, carriage);
      if (end > from) this.pass(text.slice(from, end));
      this.endsBefore += 1;
      from = end + 1;
      if (end === carriage) carriage = endAt(text, '\r', from);
      else {
        this.number += 1;
        feed = endAt(text, '\n', from);
      }
    }
  }

  private pass(raw: string): void {
    const { text, rank } = plainText(raw);
    if (text.length > 0) this.onLine({ text, number: this.number, rank });
  }
}

/** @returns the length of `text` where there is none */
function endAt(text: string, end: '\n' | '\r', from: number): number {
  const at = text.indexOf(end, from);
  return at === -1 ? text.length : at;
}

function firstEnd(bytes: Buffer): number {
  const feed = bytes.indexOf(lineFeed);
  const carriage = (feed === -1 ? bytes : bytes.subarray(0, feed)).indexOf(carriageReturn);
  return carriage === -1 ? feed : carriage;
}

/** All lines of a whole output. */
export function linesOf(output: string | Uint8Array): readonly Line[] {
  const lines: Line[] = [];
  const reader = new LineReader((line) => lines.push(line));
  reader.feed(typeof output === 'string' ? Buffer.from(output) : output);
  reader.end();
  return lines;
}

/** Colours, cursor moves and erasures (ECMA-48 control sequences): nested progress bars move the cursor, too. */
const escape = '\u001B';
const controlSequences = new RegExp(String.raw`${escape}\[[0-?]{0,32}[ -/]{0,4}[@-~]`, 'g');

function withoutControls(text: string): string {
  return text.includes(escape) ? text.replace(controlSequences, '') : text;
}

/**
 * One pattern per launcher. At most one space belongs to a prefix: the others are the indentation of a traceback.
 *
 * - `[rank3]:` of PyTorch: a global rank, the only prefix that has one.
 * - `[default3]:` of torchrun: a role and a LOCAL rank.
 * - `[node137:3]:`: a host and a local rank. A host has a letter and is no source file, so neither `[12:30]:` nor
 *   `[timer.py:260]:` is one.
 * - `3: ` and `3:` of `srun --label`: the number of a task. That is a rank if every GPU has a task, and a node if every node
 *   has one. Before a digit it is a time of day (`0:01:40`) and no label.
 * - `(TaskRunner pid=4711, ip=10.0.0.2) ` and `(raylet) ` of Ray, which shows what its processes print.
 */
const rankPrefix = /^\[rank(\d{1,6})\]: ?/;
const localPrefix =
  /^\[(?:default\d{1,4}|(?![\w.-]{1,255}\.(?:py|cpp|cc|cu|c|h|rs|go):)(?=[\w.-]{0,255}[A-Za-z])[\w.-]{1,255}:\d{1,3})\]: ?/;
const taskPrefix = /^ {0,5}\d{1,6}:(?: |(?=[^\d\s]))/;

const processPrefix = /^\((?:raylet|(?:[\w.]{1,100} )?pid=\d{1,10})(?:, ip=[\d.]{7,15})?\) ?/;

const prefixesMax = 3;
const bracket = 0x5b;
const parenthesis = 0x28;
const space = 0x20;
const zero = 0x30;
const nine = 0x39;

interface PlainText {
  readonly text: string;
  /** The global rank, where a prefix has it. */
  readonly rank: number | null;
}

/**
 * Takes the codes of the terminal and the prefixes of launchers off a line. Colours stand between fields and would break any
 * pattern; a prefix stands in front of the text that the program wrote.
 *
 * @param raw one line without its end
 */
function plainText(raw: string): PlainText {
  let text = withoutControls(raw);
  let rank: number | null = null;
  // Prefixes stack: srun labels what PyTorch has labelled before.
  for (let taken = 0; taken < prefixesMax; taken += 1) {
    const first = text.charCodeAt(0);
    if (first === bracket) {
      const ranked = rankPrefix.exec(text);
      const prefix = ranked ?? localPrefix.exec(text);
      if (prefix === null) break;
      if (ranked !== null) rank = Number(ranked[1]);
      text = text.slice(prefix[0].length);
    } else if (first === space || (first >= zero && first <= nine)) {
      const prefix = taskPrefix.exec(text);
      if (prefix === null) break;
      text = text.slice(prefix[0].length);
    } else if (first === parenthesis) {
      const prefix = processPrefix.exec(text);
      if (prefix === null) break;
      text = text.slice(prefix[0].length);
    } else break;
  }
  return { text, rank };
}
