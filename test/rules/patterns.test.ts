/**
 * Anyone who writes an output chooses what the patterns are tried on. Each must take time with the length of a line at most:
 * one that takes its square turns a few megabytes of a task's output into a minute of silence.
 *
 * Times are those of this thread's processor, and compared with each other only: what grows like the text is well whatever
 * the machine, and what grows with its square shows on any.
 */
import { expect, test } from 'vitest';
import { codeOnly, productFiles } from './source.ts';

/** What reads output of tasks, records of the kernel, and answers of the driver's programs. */
const readers = [
  'packages/diagnosis/src/',
  'packages/agent/src/failure/',
  'packages/agent/src/training/',
  'packages/agent/src/logs/',
  'packages/agent/src/health/kernel',
  'packages/agent/src/gpus/nvidiaSmi/',
  'packages/agent/src/gpus/dcgm/',
  'packages/cli/src/diagnose/',
];

const shortLength = 2_000;
const longLength = 8_000;
/** A length four times as great costs four times as much, or sixteen times. */
const growthMax = 8;
/** Below this nothing is worth a second look: a megabyte in 60 ms. */
const quickMsPerCharacter = 60e-6;
const measuredMs = 10;
const wordsMax = 12;
const fillers = [
  '1',
  'a',
  'A',
  ' ',
  '.',
  '"',
  "'",
  ',',
  '|',
  '[',
  '-',
  '_',
  '/',
  'é',
  ': ',
  'a.',
  'a=1 ',
  '1, ',
];

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Of one search, from so many that the clock's grain does not matter. */
function costMs(pattern: RegExp, text: string): number {
  const startedAtMs = cpuMs();
  for (let searches = 1; ; searches += 1) {
    search(pattern, text);
    const tookMs = cpuMs() - startedAtMs;
    if (tookMs >= measuredMs) return tookMs / searches;
  }
}

/** The clock on the wall is enough to see that something is quick. */
function isQuick(pattern: RegExp, text: string): boolean {
  const startedAtMs = performance.now();
  search(pattern, text);
  return performance.now() - startedAtMs < quickMsPerCharacter * text.length;
}

function search(pattern: RegExp, text: string): void {
  pattern.lastIndex = 0;
  pattern.exec(text);
}

/** The fixed words of a pattern: what a line repeats that wants it to be slow. */
function wordsOf(pattern: RegExp): readonly string[] {
  const literal = '\u0001';
  const plain = pattern.source
    .replace(/\\([^\w\s])/g, (_, character: string) =>
      /[.|()*+?^$[\]{}]/.test(character) ? literal : character,
    )
    .replace(/\(\?(?:[:=!]|<[=!])/g, '(')
    .replace(/\\\w|\{[\d,]+\}|\[[^\]]*\]|[*+?^$]/g, '\n')
    .split(/[\n()|.]/);
  const marks = [...pattern.source.matchAll(/\\([.|()*+?^$[\]{}])/g)].map(([, mark = '']) => mark);
  const words = plain
    .map((word) => word.replaceAll(literal, () => marks.shift() ?? ''))
    .filter((word) => word !== '');
  return [...new Set(words)].slice(0, wordsMax);
}

/** Of any length: each is made of pieces that are repeated. */
function textsFor(pattern: RegExp): readonly ((length: number) => string)[] {
  const words = wordsOf(pattern);
  const whole = words.join('');
  const pieces = [
    ...words,
    ...fillers,
    whole,
    words.join(' '),
    ...words.flatMap((word) => ['1', 'a', ' '].map((filler) => `${word}${filler}`)),
    ...words.map((word) => `${word}${'1'.repeat(60)}`),
    ...words.map((word) => `${word}${'a '.repeat(60)}`),
  ];
  const repeated = pieces
    .filter((piece) => piece !== '')
    .map((piece) => (length: number) => piece.repeat(length / piece.length + 1).slice(0, length));
  const head = words[0] ?? '';
  const afterHead = ['1', 'a', ' ', ...words.slice(1)].map(
    (piece) => (length: number) => head + piece.repeat(length / piece.length),
  );
  const pairs = words.slice(0, 5).flatMap((one) =>
    words.slice(0, 5).map((other) => (length: number) => {
      const half = length / 2;
      return (
        one.repeat(half / one.length + 1) +
        other
          .slice(0, -1)
          .padEnd(1)
          .repeat(half / other.length + 1)
      );
    }),
  );
  return [...repeated, ...afterHead, ...pairs];
}

/** @returns the text that it is slow with, cut; null: there is none */
function slowText(pattern: RegExp): string | null {
  for (const make of textsFor(pattern)) {
    const long = make(longLength);
    if (isQuick(pattern, long) || isQuick(pattern, long)) continue;
    const short = make(shortLength);
    let growth = Number.POSITIVE_INFINITY;
    // What else the machine does can make one measurement longer, hardly the long one of each of three.
    for (let round = 0; round < 3 && growth > growthMax; round += 1)
      growth = Math.min(growth, costMs(pattern, long) / costMs(pattern, short));
    if (growth > growthMax) return `${long.slice(0, 60)}… (${growth.toFixed(1)} times as slow)`;
  }
  return null;
}

function regExpOf(literal: string): RegExp {
  const end = literal.lastIndexOf('/');
  return new RegExp(literal.slice(1, end), literal.slice(end + 1));
}

test('a pattern that takes the square of a line is seen', () => {
  const slow = [
    /(?:gloo|ProcessGroup|NCCL|c10d|TCPStore|Socket).*[Cc]onnection (?:was )?(?:reset|closed|refused|aborted)/,
    /\/dev\/shm\/.*No space left on device/,
    /([\d.]+) (?:MiB|GiB) total capacity/,
    /slurmstepd: error: \*\*\* .*CANCELLED/,
  ];
  expect(slow.filter((pattern) => slowText(pattern) === null)).toEqual([]);
  expect(slowText(/gloo.{0,60} reset|step: {1,6}\d{1,12}/)).toBeNull();
});

test('no pattern that is tried on what others write takes the square of its length', () => {
  const literals = new Map<string, string>();
  for (const { path, text } of productFiles())
    if (readers.some((reader) => path.startsWith(reader)))
      codeOnly(text, (literal) => literals.set(literal, path));
  expect(literals.size, 'patterns were found').toBeGreaterThan(100);
  const slow = [...literals].flatMap(([literal, path]) => {
    const text = slowText(regExpOf(literal));
    return text === null ? [] : [`${path}: ${literal} with ${text}`];
  });
  expect(slow).toEqual([]);
});
