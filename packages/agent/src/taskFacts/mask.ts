/**
 * Hides values in the output of a task and in what is reported about it. A value is replaced by as many asterisks as it has bytes,
 * so that positions in the output stay what they are.
 */

const asterisk = 0x2a;
const lineFeed = 0x0a;
/** Of a line of a value of several lines: shorter ones, such as braces, are in many outputs. */
const lineBytesMin = 8;
/** Of a value that a text ends within: fewer bytes reveal little, and many other texts end with them. */
const cutBytesMin = 4;

export class Mask {
  private readonly patterns: readonly Pattern[];

  /** @param values none is empty */
  constructor(values: readonly Uint8Array[]) {
    const patterns = values.flatMap((value) => patternsOf(Buffer.from(value)));
    this.patterns = patterns.map((bytes) => new Pattern(bytes));
  }

  /** Of the longest value, bytes; 0: there is none. */
  get longest(): number {
    return Math.max(0, ...this.patterns.map(({ bytes }) => bytes.length));
  }

  /** Hides every value that these bytes contain completely, in place. Line ends stay. */
  hide(bytes: Buffer): void {
    const found = this.patterns.flatMap((pattern) => [...pattern.places(bytes)]);
    for (const [from, to] of found) {
      for (let at = from; at < to; at += 1) if (bytes[at] !== lineFeed) bytes[at] = asterisk;
    }
  }

  /** How many bytes at the end of these may be the beginning of a value whose rest is still to come. */
  unfinished(bytes: Buffer): number {
    return Math.max(0, ...this.patterns.map((pattern) => pattern.begunIn(bytes)));
  }

  /** Of a text that may have been cut within a value. */
  text(text: string): string {
    const bytes = Buffer.from(text);
    const cut = this.unfinished(bytes);
    this.hide(bytes);
    if (cut >= cutBytesMin) bytes.fill(asterisk, bytes.length - cut);
    return bytes.toString();
  }
}

/** Hides all but line ends: where the values are no longer known, any byte may belong to one. */
export const everything: Pick<Mask, keyof Mask> = {
  longest: 1,
  hide(bytes) {
    for (const [at, byte] of bytes.entries()) if (byte !== lineFeed) bytes[at] = asterisk;
  },
  unfinished: () => 0,
  text: () => '(hidden: the values of its secrets are lost on this node)',
};

/** A value, and each of its lines: programs print keys and certificates line by line, indented. */
function patternsOf(value: Buffer): readonly Buffer[] {
  const lines = value
    .toString('latin1')
    .split('\n')
    .map((line) => Buffer.from(line.trim(), 'latin1'))
    .filter((line) => line.length >= lineBytesMin && line.length < value.length);
  return [value, ...lines];
}

/** A value to look for. */
class Pattern {
  readonly bytes: Buffer;
  /** For each beginning, the length of the longest shorter beginning that it ends with (Knuth, Morris, Pratt). */
  private readonly borders: Uint32Array;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.borders = new Uint32Array(bytes.length + 1);
    for (let length = 2; length <= bytes.length; length += 1)
      this.borders[length] = this.longer(this.borders[length - 1] ?? 0, bytes[length - 1]);
  }

  /** Where it stands in these bytes. Places that overlap are one, so that nothing is compared twice. */
  *places(bytes: Buffer): Generator<readonly [from: number, to: number]> {
    const { length } = this.bytes;
    const period = length - (this.borders[length] ?? 0);
    const repeated = this.bytes.subarray(length - period);
    for (let at = bytes.indexOf(this.bytes); at >= 0; ) {
      let end = at + length;
      while (repeated.equals(bytes.subarray(end, end + period))) end += period;
      yield [at, end];
      at = bytes.indexOf(this.bytes, end - length + 1);
    }
  }

  /** Of the longest end of these bytes that it begins with, and that is not all of it, the length. */
  begunIn(bytes: Buffer): number {
    let length = 0;
    for (const byte of bytes.subarray(Math.max(0, bytes.length - this.bytes.length + 1)))
      length = this.longer(length, byte);
    return length;
  }

  /** What of it has been seen, once another byte is. @param length what had been seen before, less than all of it */
  private longer(length: number, byte: number | undefined): number {
    let seen = length;
    while (seen > 0 && this.bytes[seen] !== byte) seen = this.borders[seen] ?? 0;
    return this.bytes[seen] === byte ? seen + 1 : 0;
  }
}
