import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { openHighestTerm } from './highestTerm.ts';

function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'term-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('a lower term than the highest is refused, also by the next agent', () => {
  const directory = aDirectory();
  const terms = openHighestTerm(join(directory, 'term'), silentLogger);
  expect(terms.highest).toBe(0);
  expect([terms.admit(0), terms.admit(4), terms.admit(4), terms.admit(3)]).toEqual([true, true, true, false]);
  expect(terms.highest).toBe(4);
  const next = openHighestTerm(join(directory, 'term'), silentLogger);
  expect([next.highest, next.admit(3), next.admit(5)]).toEqual([4, false, true]);
  expect(readdirSync(directory)).toEqual(['term']);
});

test('one that cannot be written down counts all the same', () => {
  const errors: object[] = [];
  const log = { ...silentLogger, error: (fields: object) => void errors.push(fields) };
  const terms = openHighestTerm(join(aDirectory(), 'not', 'there'), log);
  expect([terms.admit(4), terms.admit(3)]).toEqual([true, false]);
  expect(errors).toMatchObject([{ term: 4 }]);
});
