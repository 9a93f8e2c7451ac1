import { expect, test } from 'vitest';
import { nodeNameOf } from '../modelFixture.ts';
import { detectPartition } from './partition.ts';

const windowMs = 6_000;

/** One letter a node: `.` answers, a digit is the second at which its silence was noticed. */
function look(before: string | null, nodes: string, nowS: number): string | null {
  const name = (index: number) => nodeNameOf(`node-${index}`);
  const seen = Array.from(nodes, (letter, index) => ({
    node: name(index),
    silentSinceMs: letter === '.' ? null : Number(letter) * 1_000,
  }));
  const suspects =
    before === null
      ? null
      : new Set(Array.from(before).flatMap((mark, index) => (mark === 'x' ? [name(index)] : [])));
  const after = detectPartition(suspects, seen, nowS * 1_000, windowMs);
  return after === null ? null : seen.map(({ node }) => (after.has(node) ? 'x' : '-')).join('');
}

test.each([
  ['two nodes tell nothing', '33', 3, null],
  ['half is not most', '333...', 3, null],
  ['more than half, at once', '333..', 3, 'xxx--'],
  ['more than half, within one lease', '368..', 9, 'xxx--'],
  ['one of them longer ago', '258..', 9, null],
  ['all of them', '444', 4, 'xxx'],
  ['those of long ago do not count, on neither side', '0000333..', 9, '----xxx--'],
])('%s', (_, nodes, nowS, expected) => {
  expect(look(null, nodes, nowS)).toBe(expected);
});

test.each([
  ['it lasts however long they are away', 'xxx--', '111..', 'xxx--'],
  ['half of them back', 'xxxx-', '11...', null],
  ['less than half back', 'xxxx-', '111..', 'xxx--'],
  ['more that fall join them', 'xxx---', '111.9.', 'xxx-x-'],
  ['two that are left are enough to go on with it', 'xxx--', '11.9', 'xx-x'],
])('once begun: %s', (_, before, nodes, expected) => {
  expect(look(before, nodes, 9)).toBe(expected);
});
