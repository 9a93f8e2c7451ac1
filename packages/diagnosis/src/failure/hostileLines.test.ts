/**
 * Lines made of what each rule looks for, a megabyte of each, read by everything that reads an output. Compared with an
 * ordinary log of the same length in the same run, by the time of this thread's processor.
 */
import { expect, test } from 'vitest';
import { LogDiagnosis } from '../diagnose.ts';
import { lineFormats } from '../progress/formats.ts';
import { signatureRules } from './failureReader.ts';

const bytes = 1_000_000;
/** Some hundreds of times with patterns that take the square of a line, some times with those that do not. */
const timesMax = 60;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function costMs(output: Buffer): number {
  const startedAtMs = cpuMs();
  const log = new LogDiagnosis();
  log.feed(output);
  log.end();
  log.result({ exitCode: 1, signal: null, oomKilled: false });
  return cpuMs() - startedAtMs;
}

const lineOf = (piece: string, length: number) => piece.repeat(length / piece.length + 1).slice(0, length);

/** In lines as long as they are read, and in one that is longer than any. */
function outputsOf(piece: string): readonly Buffer[] {
  return [8_000, bytes].map((length) => Buffer.from(`${lineOf(piece, length)}\n`.repeat(bytes / length)));
}

const ordinary = Buffer.from(
  'iter 17: loss 2.1234, time 440.71ms, mfu 48.31%\nINFO data: shard 17 of 97 is open, 0 errors so far\n'.repeat(
    bytes / 100,
  ),
);
const ordinaryMs = Math.max(...[1, 2, 3].map(() => costMs(ordinary)));

const pieces: readonly (readonly [string, string])[] = [
  ...signatureRules.map(({ name, hints }) => [name, `${hints.join(' 1 ')} `] as const),
  ...lineFormats.flatMap(({ framework, marks }) => marks.map((mark) => [framework, `${mark}1`] as const)),
  ['every hint', signatureRules.flatMap(({ hints }) => hints).join(' ')],
  ['words in front of a gap', `${'gloo'.repeat(1_000)}${'Connection '.repeat(360)}`],
  ['bars in one line', ' 1/900 [00:10<01:00, 2.00s/it]'],
  ['numbers', '1'],
  ['sizes', '1.0 GiB free 1.0 GiB total capacity '],
  ['overflows', `overflow loss scale: ${'1'.repeat(40)} reducing `],
  ['names', 'Error.'],
  ['entries', "'loss': 1, "],
  ['keys', '{"step": 1, "loss": 2, '],
  ['prefixes', '[rank3]: [default3]: '],
  ['colours', '\u001B[31'],
];

test.each(pieces)('%s', (_, piece) => {
  for (const output of outputsOf(piece)) {
    // One that is too slow may have been disturbed, not three times.
    const times = () => costMs(output) / ordinaryMs;
    const slow = [times()];
    while (slow.length < 3 && Math.min(...slow) > timesMax) slow.push(times());
    expect(Math.min(...slow)).toBeLessThan(timesMax);
  }
});
