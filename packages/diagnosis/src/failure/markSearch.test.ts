import { expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { MarkSearch } from './markSearch.ts';

const searchFor = (...marks: readonly string[]) => new MarkSearch(marks.map((mark) => [mark, mark] as const));

test('marks are found at the beginning, in the middle and at the end, and as often as they are there', () => {
  expect([...searchFor('Error', 'os err').in('Error: an os error, Error')]).toEqual(['Error', 'os err']);
});

test('marks that overlap or begin with each other are all found', () => {
  expect([...searchFor('nccl', 'ncclRemote', 'lRem').in('ncclRemoteError')].sort()).toEqual([
    'lRem',
    'nccl',
    'ncclRemote',
  ]);
});

test.each(['', 'E', 'Erro', 'rror', '█████████'])('%j has none', (text) => {
  expect([...searchFor('Error', 'NaN in').in(text)]).toEqual([]);
});

test('one mark may mean several things', () => {
  const search = new MarkSearch([
    ['CUDA error', 1],
    ['CUDA error', 2],
  ]);
  expect([...search.in('a CUDA error')]).toEqual([1, 2]);
});

test('whatever a text is made of, what is found is what looking for each mark finds', () => {
  // A few letters, so that marks are hit often and nearly hit more often; the last two share their places with others.
  const letters = ['a', 'b', 'c', ' ', 'é', '█'] as const;
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const chance = seededChance(seed);
    const word = (min: number, max: number) =>
      Array.from({ length: chance.integer(min, max) }, () => chance.pick(letters)).join('');
    const marks = [...new Set(Array.from({ length: chance.integer(1, 6) }, () => word(2, 7)))];
    const text = word(0, 60);
    const found = new Set(searchFor(...marks).in(text));
    expect([...found].sort(), `seed ${seed}`).toEqual(marks.filter((mark) => text.includes(mark)).sort());
  }
});
