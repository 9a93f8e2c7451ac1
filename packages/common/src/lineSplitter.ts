/** Splits the text of a stream into lines: what two processes of Muster send each other through a pipe. */
export class LineSplitter {
  private readonly lengthMax: number;
  private rest = '';

  /** @param lengthMax characters of a line without its end; a longer one is not a message of Muster */
  constructor(lengthMax: number) {
    this.lengthMax = lengthMax;
  }

  /** @returns the lines that this part completes @throws {Error} for a line that is longer than the limit */
  push(part: string): readonly string[] {
    const lines = (this.rest + part).split('\n');
    this.rest = lines.pop() ?? '';
    if (this.rest.length > this.lengthMax) throw new Error('a line that does not end');
    return lines;
  }
}
