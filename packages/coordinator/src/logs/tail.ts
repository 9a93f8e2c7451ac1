/** Where the last lines of an output begin. */

/** Size of one read: large enough to be quick, small enough to hold many at once. */
export const readBytes = 64 * 1024;

const newline = 0x0a;

/**
 * @param size where the output ends
 * @param starts positions where output begins after a gap; the lines before the last gap do not count
 * @returns where the last `lines` lines begin; when there are fewer, the beginning or the end of the last gap
 */
export async function tailOffset(
  lines: number,
  size: number,
  read: (offset: number, limit: number) => Promise<Uint8Array>,
  starts: readonly number[],
): Promise<number> {
  let missing = lines;
  const floor = await lastGapEnd(size, read, starts);
  for (let end = size; end > floor; ) {
    const start = Math.max(floor, end - readBytes);
    const piece = await readWhole(read, start, end - start);
    // A newline at the very end closes the last line and begins none.
    for (let at = piece.length - 1; at >= 0; at -= 1) {
      if (piece[at] !== newline || start + at === size - 1) continue;
      missing -= 1;
      if (missing === 0) return start + at + 1;
    }
    end = start;
  }
  // Nothing is left: then the marker at the beginning, which reports it, is of use.
  return floor === size ? 0 : floor;
}

/** Of the positions before which nothing can be read, the last. */
async function lastGapEnd(
  size: number,
  read: (offset: number, limit: number) => Promise<Uint8Array>,
  starts: readonly number[],
): Promise<number> {
  for (const start of starts.toReversed()) {
    if (start <= size && start > 0 && (await read(start - 1, 1)).length === 0) return start;
  }
  return 0;
}

/** A read ends where a file does; the next read continues in the next file. */
async function readWhole(
  read: (offset: number, limit: number) => Promise<Uint8Array>,
  start: number,
  length: number,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < length; ) {
    const piece = await read(start + at, length - at);
    if (piece.length === 0) break;
    pieces.push(piece);
    at += piece.length;
  }
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
}
