import { expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import type { Line } from '../model.ts';
import { LineReader, linesOf } from './lineReader.ts';
import { chunksOf } from './testing/chunks.ts';

const plain = (text: string, number: number, rank: number | null = null): Line => ({ text, number, rank });
const texts = (output: string) => linesOf(output).map(({ text }) => text);

function readInChunks(bytes: Uint8Array, seed: number, lineBytesMax?: number): readonly Line[] {
  const lines: Line[] = [];
  const reader = new LineReader(
    (line) => lines.push(line),
    lineBytesMax === undefined ? {} : { lineBytesMax },
  );
  for (const chunk of chunksOf(bytes, seededChance(seed))) reader.feed(chunk);
  reader.end();
  return lines;
}

test('line feeds and carriage returns end lines, and only line feeds are counted', () => {
  expect(linesOf('one\ntwo\r\n\n\r 5%|\r10%|\rfour\nfive')).toEqual([
    plain('one', 1),
    plain('two', 2),
    plain(' 5%|', 4),
    plain('10%|', 4),
    plain('four', 4),
    plain('five', 5),
  ]);
});

test.each([
  ['\x1b[32mstep: \x1b[0m 1', 'step:  1'],
  ['\x1b[1;38;5;208mloss\x1b[m', 'loss'],
  ['\x1b[2K\x1b[A 50%|', ' 50%|'],
  ['no sequence: \x1b', 'no sequence: \x1b'],
])('colours and cursor moves are taken off: %j', (raw, text) => {
  expect(texts(raw)).toEqual([text]);
});

test.each<[string, string, number | null]>([
  ['[rank0]: Traceback (most recent call last):', 'Traceback (most recent call last):', 0],
  ['[rank12]:   File "train.py", line 3', '  File "train.py", line 3', 12],
  ['[rank1]:[E813 12:25:30.691567129 Group.cpp:632] late', '[E813 12:25:30.691567129 Group.cpp:632] late', 1],
  ['[default3]: iteration 5', 'iteration 5', null],
  ['[gpu-a.cluster:7]:ready', 'ready', null],
  ['0: ready', 'ready', null],
  ['  11: ready', 'ready', null],
  ["3:{'loss': 2.5}", "{'loss': 2.5}", null],
  ['2: [rank5]: ready', 'ready', 5],
  ['\x1b[31m[rank2]:\x1b[0m ready', 'ready', 2],
])('the prefix of a launcher is taken off: %j', (raw, text, rank) => {
  expect(linesOf(raw)).toEqual([plain(text, 1, rank)]);
});

test.each([
  '0:01:40 until the next save',
  '[12:30]: a time of day',
  '[timer.py:260]: a place in a file',
  '[rank]: no number',
  '[Rank 0] no launcher',
  '  File "train.py", line 3',
  'step 5: not at the beginning',
])('what only looks like a prefix stays: %j', (text) => {
  expect(linesOf(text)).toEqual([plain(text, 1)]);
});

test('bytes that are no UTF-8 spoil their own line only', () => {
  const output = Buffer.concat([
    Buffer.from('good é\n'),
    Buffer.from([0x61, 0xff, 0xc3, 0x0a]),
    Buffer.from('日'),
  ]);
  expect(linesOf(output).map(({ text }) => text)).toEqual(['good é', 'a\ufffd\ufffd', '日']);
});

test('of a line that is too long its beginning is reported, and the next line is whole', () => {
  const lines: Line[] = [];
  const reader = new LineReader((line) => lines.push(line), { lineBytesMax: 8 });
  for (const part of [
    '0123',
    '4567',
    '89',
    'more\nab',
    'c\n',
    `${'x'.repeat(8)}\n`,
    `${'é'.repeat(9)}\rlast`,
  ]) {
    reader.feed(Buffer.from(part));
  }
  reader.end();
  expect(lines).toEqual([
    plain('01234567', 1),
    plain('abc', 2),
    plain('x'.repeat(8), 3),
    plain('éééé', 4),
    plain('last', 4),
  ]);
});

test('a line that has not ended is reported at the end, once', () => {
  const lines: Line[] = [];
  const reader = new LineReader((line) => lines.push(line));
  reader.feed(Buffer.from('begun'));
  expect(lines).toEqual([]);
  reader.end();
  reader.end();
  expect(lines).toEqual([plain('begun', 1)]);
});

test('however bytes are cut, the lines are the same', () => {
  const pieces = [
    'a',
    'é',
    '日',
    '█',
    '\n',
    '\n',
    '\r',
    '\r\n',
    '\x1b[3',
    '1m',
    '[rank',
    '1]:',
    ' ',
    '0: ',
    '\xff',
  ] as const;
  for (let seed = 1; seed <= 300; seed += 1) {
    const chance = seededChance(seed);
    const output = Buffer.from(
      Array.from({ length: 200 }, () => chance.pick(pieces)).join(''),
      chance.integer(0, 1) === 0 ? 'utf8' : 'latin1',
    );
    // 16 bytes: lines that are cut are among them.
    const whole: Line[] = [];
    const reader = new LineReader((line) => whole.push(line), { lineBytesMax: 16 });
    reader.feed(output);
    reader.end();
    expect(readInChunks(output, seed, 16), `seed ${seed}`).toEqual(whole);
    expect(readInChunks(output, seed), `seed ${seed}`).toEqual(linesOf(output));
  }
});

test('where a line ends is known while it is reported, whatever the chunks and whoever asks', () => {
  const output = Buffer.concat([
    Buffer.from('one\r 5%|\r\ntwö\n\n'),
    Buffer.from([0xff, 0xfe, 0x0a]),
    Buffer.from(`${'x'.repeat(300)}\nlast`),
  ]);
  const ends = [3, 8, 14, 18, 319, output.length];
  for (let seed = 1; seed <= 50; seed += 1) {
    const found: number[] = [];
    let reads = 0;
    const reader: LineReader = new LineReader(
      () => {
        // Anyone who asks for some lines only gets the same for these.
        if (reads % 2 === 0 || seed % 2 === 0) found.push(reader.position);
        reads += 1;
      },
      { lineBytesMax: 64 },
    );
    for (const chunk of chunksOf(output, seededChance(seed))) reader.feed(chunk);
    reader.end();
    expect(found).toEqual(ends.filter((_, index) => index % 2 === 0 || seed % 2 === 0));
  }
});
