import { expect, test } from 'vitest';
import { everything, Mask } from './mask.ts';

function hidden(text: string, ...values: string[]): string {
  const bytes = Buffer.from(text);
  new Mask(values.map((value) => Buffer.from(value))).hide(bytes);
  return bytes.toString();
}

test.each([
  ['key=hunter2x done', ['hunter2x'], 'key=******** done'],
  ['hunter2xhunter2x', ['hunter2x'], '****************'],
  // One that overlaps another, and one within another.
  ['abababab-', ['ababab'], '********-'],
  ['xababaabab-', ['ababaabab'], 'x*********-'],
  ['aabaabaa aabaa', ['aabaa'], '******** *****'],
  ['hunter2x-long', ['hunter2x', 'hunter2x-long'], '*************'],
  ['nothing here', ['hunter2x'], 'nothing here'],
  ['ünïcödé', ['ïcödé'], 'ün********'],
])('%j with %j is %j', (text, values, expected) => {
  expect(hidden(text, ...values)).toBe(expected);
});

test('of a value of several lines each long line is hidden by itself, and line ends stay', () => {
  const key = '-----BEGIN-----\nQUJDREVGR0g=\n}\n';
  expect(hidden(`  QUJDREVGR0g=\n${key}}`, key)).toBe('  ************\n***************\n************\n*\n}');
});

test.each([
  ['see hunt', 4],
  ['see hunter2', 7],
  ['see hunter2x', 0],
  ['hhh', 1],
  ['', 0],
])('at the end of %j, %i bytes may be the beginning of a value', (text, bytes) => {
  expect(new Mask([Buffer.from('hunter2x')]).unfinished(Buffer.from(text))).toBe(bytes);
});

test('a sentence that was cut within a value shows no part of it', () => {
  const mask = new Mask([Buffer.from('hunter2x')]);
  expect(mask.text('bad key hunter2x, and hunter')).toBe('bad key ********, and ******');
  expect(mask.text('the hun')).toBe('the hun');
});

test('where values are lost everything is hidden', () => {
  const bytes = Buffer.from('a b\nc');
  everything.hide(bytes);
  expect(bytes.toString()).toBe('***\n*');
  expect(everything.text('hunter2x')).not.toContain('hunter2x');
});

test('a mask of large values is quick on output that resembles them', () => {
  const mask = new Mask([Buffer.alloc(64 * 1024, 'a'), Buffer.from('b'.repeat(1_000))]);
  const bytes = Buffer.alloc(128 * 1024, 'a');
  expect(mask.unfinished(bytes)).toBe(64 * 1024 - 1);
  mask.hide(bytes);
  expect(bytes.every((byte) => byte === 0x2a)).toBe(true);
});
