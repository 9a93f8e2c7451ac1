import { expect, test } from 'vitest';
import { resolveNamed } from './resolveNamed.ts';

const words = {
  plural: 'runs',
  missing: (text: string) => `there is no run ${text}`,
  list: 'muster pipeline list',
};
const runs = [
  { id: 'pln_00000000000c', name: 'vision' },
  { id: 'pln_00000000000b', name: 'latest' },
  { id: 'pln_10000000000a', name: 'vision' },
];
const find = (text: string, visible = runs) => resolveNamed(visible, text, words).id;

test('`latest` is the newest of all, as of jobs, whatever has that name', () => {
  expect(find('latest')).toBe('pln_00000000000c');
  expect(() => find('latest', [])).toThrow('there are no runs yet, so that none is the latest');
});

test('an id, the only beginning of one, and a name, of which the newest is meant', () => {
  expect(find('pln_10000000000a')).toBe('pln_10000000000a');
  expect(find('pln_10')).toBe('pln_10000000000a');
  expect(find('vision')).toBe('pln_00000000000c');
  expect(() => find('pln_00')).toThrow('pln_00 is the beginning of several ids of runs');
  expect(() => find('visoin')).toThrow('there is no run visoin; did you mean "vision"?');
});
