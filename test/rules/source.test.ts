import { expect, test } from 'vitest';
import { codeOnly, importsOf, resolveImport } from './source.ts';

test('comments, strings, templates and regular expressions are blanked in place', () => {
  const text = [
    "const a = 'Date.now'; // Date.now",
    '/* Date.now',
    ' */ const b = `Date.now ${Date.now()} ${{ a: `${x}` }} Date.now`;',
    'const c = /Date.now\\/[/"]/.test(d) || d / Date.now / 2;',
    'const d = "it\'s"; Date.now();',
  ].join('\n');
  const code = codeOnly(text);
  expect(code).toHaveLength(text.length);
  expect(code.split('\n').map((line) => line.match(/Date\.now/g)?.length ?? 0)).toEqual([0, 0, 1, 1, 1]);
  expect(code.indexOf('Date.now();')).toBe(text.indexOf('Date.now();'));
});

test('imports are found with what they bring in', () => {
  const text = `
import type { A } from './a.ts';
import { type B, type C } from './b.ts';
import { d, type E } from './d.ts';
import * as f from 'f';
import g, { h } from '@muster/common/h';
import './side.ts';
export { i } from './i.ts';
export * from './j.ts';
export type { K } from './k.ts';
const l = await import('./l.ts');
// import { no } from './comment.ts';
const text = "import { no } from './string.ts'";
`;
  const shown = importsOf(text).map(({ specifier, typeOnly, dynamic, line }) => {
    return `${line} ${specifier}${typeOnly ? ' type' : ''}${dynamic ? ' dynamic' : ''}`;
  });
  expect(shown.toSorted((a, b) => Number.parseInt(a) - Number.parseInt(b))).toEqual([
    '2 ./a.ts type',
    '3 ./b.ts type',
    '4 ./d.ts',
    '5 f',
    '6 @muster/common/h',
    '7 ./side.ts',
    '8 ./i.ts',
    '9 ./j.ts',
    '10 ./k.ts type',
    '11 ./l.ts dynamic',
  ]);
});

test('an import of our own leads to a file', () => {
  expect(resolveImport('packages/agent/src/a/b.ts', '../c.ts')).toBe('packages/agent/src/c.ts');
  expect(resolveImport('packages/agent/src/b.ts', '@muster/common/spec/types')).toBe(
    'packages/common/src/spec/types.ts',
  );
  expect(resolveImport('packages/agent/src/b.ts', '@grpc/grpc-js')).toBeNull();
});
