import { expect, test } from 'vitest';
import { barIntervalMs, createLineAssembler, lineBytesMax } from './logLines.ts';

/** @param pieces with the time each arrives at */
function assemble(...pieces: readonly (readonly [text: string, atMs: number])[]): readonly string[] {
  const assembler = createLineAssembler();
  const lines = pieces.flatMap(([text, atMs]) => assembler.push(Buffer.from(text), atMs));
  return [...lines, ...assembler.finish()].map(String);
}

test('lines are put together from pieces', () => {
  expect(assemble(['one\ntw', 0], ['o\n\nthr', 0], ['ee', 0])).toEqual(['one', 'two', '', 'three']);
  expect(assemble(['', 0])).toEqual([]);
});

test('Windows line ends are line ends, also when cut in two', () => {
  expect(assemble(['one\r\ntwo\r', 0], ['\nthree\r\n', 0])).toEqual(['one', 'two', 'three']);
});

test('of a finished progress bar the last state is left', () => {
  expect(assemble(['\r 10%\r 50%\r100%\ndone\n', 0])).toEqual(['100%', 'done']);
  expect(assemble(['100%\r\r\n', 0])).toEqual(['100%']);
});

test('a running progress bar shows its state from time to time, each state once', () => {
  const bar = Array.from({ length: 50 }, (_, step) => [`\r${step}%`, step * 100] as const);
  const lines = assemble(...bar, ['\r50%\n', 5_000]);
  expect(lines.at(-1)).toBe('50%');
  expect(new Set(lines).size).toBe(lines.length);
  // 5 seconds, one state a second, and the last one.
  expect(lines.length).toBeGreaterThanOrEqual(5_000 / barIntervalMs);
  expect(lines.length).toBeLessThanOrEqual(5_000 / barIntervalMs + 2);
});

test('output without line ends is broken into lines and loses no byte', () => {
  const text = 'x'.repeat(3 * lineBytesMax + 5);
  const lines = assemble([text, 0]);
  expect(lines.map(({ length }) => length)).toEqual([lineBytesMax, lineBytesMax, lineBytesMax, 5]);
  const inPieces = assemble(
    ...Array.from({ length: 7 }, (_, part) => [text.slice(part * 30_000, (part + 1) * 30_000), 0] as const),
  );
  expect(inPieces.join('')).toBe(text);
  expect(Math.max(...inPieces.map(({ length }) => length))).toBeLessThanOrEqual(lineBytesMax);
});

test('however output is cut into pieces, its lines are the same', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = seeded(seed);
    const text = Array.from(
      { length: 200 },
      () => ['a', 'é', '日', '\n', '\n', ' ', 'z'][Math.floor(random() * 7)],
    ).join('');
    const whole = assemble([text, 0]);
    expect(whole).toEqual(
      text.split('\n').filter((line, index, all) => line !== '' || index < all.length - 1),
    );
    const bytes = Buffer.from(text);
    const assembler = createLineAssembler();
    const lines: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + Math.floor(random() * 20);
      lines.push(...assembler.push(bytes.subarray(at, at + size), at));
      at += size;
    }
    lines.push(...assembler.finish());
    expect(lines.map(String), `seed ${seed}`).toEqual(whole);
  }
});

/** Mulberry32: the same numbers for the same seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
