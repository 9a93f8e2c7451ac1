/**
 * Bytes of one rank, as they come, to whole lines, so that the lines of several ranks never mix. Pure.
 *
 * Progress bars overwrite their line with a carriage return instead of ending it. Of the texts between carriage returns
 * only the last one counts, as on a terminal; while a bar runs its latest state is let through from time to time, for
 * otherwise anyone who follows a training run would see nothing until the epoch ends.
 */

/** A longer line is broken, so that output without line ends cannot fill memory. */
export const lineBytesMax = 64 * 1024;
/** One state of a progress bar per rank and this time is enough. */
export const barIntervalMs = 1_000;

const newline = 0x0a;
const carriageReturn = 0x0d;
const nothing = Buffer.alloc(0);

export interface LineAssembler {
  /** @returns the lines that are complete now, without their line ends */
  push(data: Uint8Array, nowMs: number): readonly Buffer[];
  /** The rank's output is complete: what has no line end is a line too. */
  finish(): readonly Buffer[];
}

export function createLineAssembler(): LineAssembler {
  /** What came after the last line end and carriage return. */
  let open: Buffer = nothing;
  /** What the open line showed before its last carriage return: visible until something overwrites it. */
  let bar: Buffer = nothing;
  let barIsOut = false;
  let lastBarMs = Number.NEGATIVE_INFINITY;

  function continueLine(text: Buffer): void {
    const { current, before } = visibleParts(text);
    open = current;
    if (before.length === 0) return;
    bar = before;
    barIsOut = false;
  }

  function endLine(): readonly Buffer[] {
    const line = open.length > 0 ? open : bar;
    const isOut = open.length === 0 && barIsOut;
    open = nothing;
    bar = nothing;
    barIsOut = false;
    return isOut ? [] : broken(line);
  }

  return {
    push(data, nowMs) {
      const lines: Buffer[] = [];
      const text =
        open.length === 0
          ? Buffer.from(data.buffer, data.byteOffset, data.length)
          : Buffer.concat([open, data]);
      let start = 0;
      for (let end = text.indexOf(newline); end >= 0; end = text.indexOf(newline, start)) {
        continueLine(text.subarray(start, end));
        lines.push(...endLine());
        start = end + 1;
      }
      continueLine(text.subarray(start));
      while (open.length > lineBytesMax) {
        lines.push(open.subarray(0, lineBytesMax));
        open = open.subarray(lineBytesMax);
      }
      // Copies: a view would keep the whole piece it came in alive.
      open = Buffer.from(open);
      bar = Buffer.from(bar);
      if (bar.length > 0 && !barIsOut && nowMs - lastBarMs >= barIntervalMs) {
        lines.push(...broken(bar));
        barIsOut = true;
        lastBarMs = nowMs;
      }
      return lines;
    },
    finish: () => (open.length === 0 && bar.length === 0 ? [] : endLine()),
  };
}

/** Splits a line at its carriage returns: the text after the last one, and the last text before it that is not empty. */
function visibleParts(line: Buffer): { readonly current: Buffer; readonly before: Buffer } {
  let last = line.lastIndexOf(carriageReturn);
  if (last < 0) return { current: line, before: nothing };
  const current = line.subarray(last + 1);
  let before = nothing as Buffer;
  while (last >= 0 && before.length === 0) {
    const previous = last === 0 ? -1 : line.lastIndexOf(carriageReturn, last - 1);
    before = line.subarray(previous + 1, last);
    last = previous;
  }
  return { current, before };
}

function broken(line: Buffer): readonly Buffer[] {
  if (line.length <= lineBytesMax) return [line];
  const parts = Math.ceil(line.length / lineBytesMax);
  return Array.from({ length: parts }, (_, part) =>
    line.subarray(part * lineBytesMax, (part + 1) * lineBytesMax),
  );
}
