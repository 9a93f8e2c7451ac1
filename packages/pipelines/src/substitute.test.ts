import { expect, test } from 'vitest';
import { referencesIn, substitute } from './substitute.ts';

const values = {
  params: { lr: 0.1, gpus: 2, tags: ['a', 'b'] },
  inputs: { data: '/d', models: ['/m/0', '/m/1'] },
  outputs: { out: '/o' },
  item: 7,
};

test.each([
  [`--lr=\${params.lr}`, '--lr=0.1'],
  [`\${params.gpus}`, 2],
  [{ a: { b: `\${item}` } }, { a: { b: 7 } }],
  [
    ['run', `\${inputs.models}`, `\${outputs.out}/x`],
    ['run', '/m/0', '/m/1', '/o/x'],
  ],
  [`cat \${inputs.models}`, 'cat /m/0 /m/1'],
  [`\${HOME} $x \${params.none} \${lr}`, `\${HOME} $x \${params.none} \${lr}`],
  [
    [[1], null, true],
    [[1], null, true],
  ],
])('%j becomes %j', (written, expected) => {
  expect(substitute(written, values)).toEqual(expected);
});

test('a value that looks like a reference is not filled in again', () => {
  const params = { a: `\${params.b}`, b: 'x' };
  expect(substitute(`-\${params.a}`, { ...values, params })).toBe(`-\${params.b}`);
});

test('references are found with their places', () => {
  expect(referencesIn({ a: ['x', `\${item} \${params.p}`] })).toEqual([
    { kind: 'item', name: '', path: ['a', 1] },
    { kind: 'params', name: 'p', path: ['a', 1] },
  ]);
});
