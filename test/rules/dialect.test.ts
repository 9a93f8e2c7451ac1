/** One dialect where the language offers several: see docs/decisions/dialect.md. Groups in literals are the linter's. */
import { expect, test } from 'vitest';
import { expectNone, isGenerated, matchesInCode, repositoryFiles } from './source.ts';

const hidden = /(?<![\w$])#[a-zA-Z]\w*/g;
const shouted = /\b(?:const|let)\s+[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*(?=\s*[:=])/g;

/** Users copy the examples, and JavaScript has no other private members. */
const own = repositoryFiles().filter(({ path }) => !isGenerated(path) && !path.startsWith('examples/'));
const typeScript = own.filter(({ path }) => path.endsWith('.ts'));

test('the checker sees hidden members and constants in capitals', () => {
  const text = "class A { #x = '#y'; f() { return this.#x; } }\nconst MAX_MS: number = 1;\nconst aB = X_Y;";
  expect(matchesInCode({ path: 'a.ts', text }, hidden)).toEqual(['a.ts:1: #x', 'a.ts:1: #x']);
  expect(matchesInCode({ path: 'a.ts', text }, shouted)).toEqual(['a.ts:2: const MAX_MS']);
});

test('private members are marked `private`', () => {
  expectNone(
    typeScript.flatMap((file) => matchesInCode(file, hidden)),
    'Two ways to hide a member make two kinds of classes: write `private`.',
  );
});

test('constants are in camelCase', () => {
  const code = own.filter(({ path }) => /\.(?:ts|mjs)$/.test(path));
  expectNone(
    code.flatMap((file) => matchesInCode(file, shouted)),
    'A name tells what it is, its place tells that it is constant: write camelCase, with the unit last.',
  );
});
