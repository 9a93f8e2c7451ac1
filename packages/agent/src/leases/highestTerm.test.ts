import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { noTerm, openHighestTerm, type Term } from './highestTerm.ts';

function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'term-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

const of = (term: number, clusterId = 'ours'): Term => ({ term, proof: `p${term}`, clusterId });

test('a lower term than the highest is refused, also by the next agent', () => {
  const directory = aDirectory();
  const terms = openHighestTerm(join(directory, 'term'), silentLogger);
  expect(terms.highest).toEqual(noTerm);
  const admitted = [0, 4, 4, 3].map((term) => terms.admit(of(term)));
  expect(admitted).toEqual([true, true, true, false]);
  expect(terms.highest).toEqual(of(4));
  const next = openHighestTerm(join(directory, 'term'), silentLogger);
  expect([next.highest, next.admit(of(3)), next.admit(of(5))]).toEqual([of(4), false, true]);
  expect(readdirSync(directory)).toEqual(['term']);
});

test('of two coordinators of one term the agent follows the one that it met first', () => {
  const path = join(aDirectory(), 'term');
  const terms = openHighestTerm(path, silentLogger);
  const [first, second] = ['run-a.mac', 'run-b.mac'].map((proof) => ({ ...of(7), proof })) as [Term, Term];
  expect([terms.admit(first), terms.admit(second), terms.admit(first)]).toEqual([true, false, true]);
  expect(openHighestTerm(path, silentLogger).admit(second)).toBe(false);
  expect(terms.admit({ ...of(7), proof: '' }), 'a coordinator of before there were proofs').toBe(true);
});

test('one that cannot be written down counts all the same', () => {
  const errors: object[] = [];
  const log = { ...silentLogger, error: (fields: object) => void errors.push(fields) };
  const terms = openHighestTerm(join(aDirectory(), 'not', 'there'), log);
  expect([terms.admit(of(4)), terms.admit(of(3))]).toEqual([true, false]);
  expect(errors).toMatchObject([{ term: 4 }]);
});

test('an agent that has joined another cluster follows it, whatever the terms of the one before', () => {
  const path = join(aDirectory(), 'term');
  const terms = openHighestTerm(path, silentLogger);
  terms.admit(of(40, 'one'));
  expect(terms.admit(of(3, 'two'))).toBe(true);
  expect(openHighestTerm(path, silentLogger).highest).toEqual(of(3, 'two'));
  expect(terms.admit(of(2, 'two')), 'and there lower ones are refused').toBe(false);
});

test('a term that an earlier version wrote down counts for the cluster that welcomes it next', () => {
  const path = join(aDirectory(), 'term');
  writeFileSync(path, '7\n');
  const terms = openHighestTerm(path, silentLogger);
  expect(terms.highest).toEqual({ ...noTerm, term: 7 });
  expect([terms.admit(of(6)), terms.admit(of(7))]).toEqual([false, true]);
  expect(openHighestTerm(path, silentLogger).highest).toEqual(of(7));
});
