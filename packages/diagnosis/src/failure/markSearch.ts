/**
 * Finds which of many words stand in a line, in one pass (Wu and Manber 1994). A pattern of a hundred alternatives tries them
 * at every character. Here a window as long as the shortest word is laid on the text, and the pair of characters at its end
 * determines how far it may move: until that pair stands where it does in the beginning of some word, or past the pair if it
 * is in the beginning of none. Only where the window may not move at all, words are compared.
 */

/** Pairs share a table of this size: those of ASCII text have nearly all a place of their own, and sharing costs time only. */
const places = 4096;

function placeOf(first: number, second: number): number {
  return ((first << 5) ^ second) & (places - 1);
}

interface Mark<Meaning> {
  readonly text: string;
  readonly meaning: Meaning;
}

export class MarkSearch<Meaning> {
  private readonly windowLength: number;
  private readonly moves: Uint8Array;
  /** By the pair that ends the window over their beginnings. */
  private readonly marks = new Map<number, Mark<Meaning>[]>();
  private readonly none: ReadonlySet<Meaning> = new Set();

  /** @param marks of 2 to 256 characters each */
  constructor(marks: Iterable<readonly [text: string, meaning: Meaning]>) {
    const all = [...marks].map(([text, meaning]) => ({ text, meaning }));
    this.windowLength = Math.min(...all.map(({ text }) => text.length));
    this.moves = new Uint8Array(places).fill(this.windowLength - 1);
    for (const mark of all) this.enter(mark);
  }

  /** @returns what the marks mean that the text has, overlapping ones, too */
  in(text: string): ReadonlySet<Meaning> {
    let found: Set<Meaning> | null = null;
    for (let end = this.windowLength - 1; end < text.length; ) {
      const place = placeOf(text.charCodeAt(end - 1), text.charCodeAt(end));
      const move = this.moves[place] ?? 0;
      if (move > 0) {
        end += move;
        continue;
      }
      const from = end - this.windowLength + 1;
      for (const mark of this.marks.get(place) ?? []) {
        if (text.startsWith(mark.text, from)) (found ??= new Set()).add(mark.meaning);
      }
      end += 1;
    }
    return found ?? this.none;
  }

  private enter(mark: Mark<Meaning>): void {
    for (let end = 1; end < this.windowLength; end += 1) {
      const place = placeOf(mark.text.charCodeAt(end - 1), mark.text.charCodeAt(end));
      const move = this.windowLength - 1 - end;
      this.moves[place] = Math.min(this.moves[place] ?? move, move);
      if (move === 0) this.marks.set(place, [...(this.marks.get(place) ?? []), mark]);
    }
  }
}
