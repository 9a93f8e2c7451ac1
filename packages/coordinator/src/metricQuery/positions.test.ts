import { expect, test } from 'vitest';
import { Positions } from './positions.ts';

test('a position says how far each source was told, and what was told of the others', () => {
  const positions = new Positions(1_000);
  expect([positions.text(), positions.atMsOf('node-1')]).toEqual(['1000', 1_000]);
  positions.advance('node-1', 5_000);
  positions.advance('node-2', 7_000);
  positions.advance('node-1', 15_000);
  expect(positions.text()).toBe('1000,node-1=15000,node-2=7000');
  const again = Positions.parse(positions.text(), false);
  expect(['node-1', 'node-2', 'node-3'].map((node) => again.atMsOf(node))).toEqual([15_000, 7_000, 1_000]);
  expect(again.text()).toBe(positions.text());
});

test('of output it says so in bytes', () => {
  const positions = new Positions(1_000);
  positions.advance('1.0', 5_000, 4_096);
  expect(positions.text()).toBe('1000,1.0=4096');
  const again = Positions.parse(positions.text(), true);
  expect([again.bytesOf('1.0'), again.bytesOf('1.1'), again.fromMs]).toEqual([4_096, null, 1_000]);
});

test('a text that no header could hold becomes the time until which all was told, but for what is long silent', () => {
  const positions = new Positions(1_000);
  for (let node = 0; node < 600; node += 1) positions.advance(`node-${node}`, 1_000_000 + node);
  positions.advance('node-silent', 5_000);
  expect(positions.text()).toBe('1000000');
});

test.each(['', 'latest', '-1', '1000,node-1', '1000,node-1=x', '1000,=5', '1,'.repeat(20_000), '1e3'])(
  '%s is none, and the message says what would be',
  (text) => {
    expect(() => Positions.parse(text, false)).toThrow(
      /^position: got ".{0,80}"; expected one that a message/,
    );
  },
);
