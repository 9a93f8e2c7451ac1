import { expect, test } from 'vitest';
import { RecentRows } from './recentRows.ts';

function rows(...all: readonly Parameters<RecentRows['add']>[0][]): RecentRows {
  const recent = new RecentRows();
  for (const each of all) recent.add(each);
  return recent;
}

test('a checkpoint has the values of the nearest step at or before its own', () => {
  const recent = rows(
    { step: 100, train_loss: 3 },
    { step: 110, train_loss: 2 },
    { step: 120, train_loss: 1 },
  );
  expect(recent.at(110)).toEqual({ step: 110, train_loss: 2 });
  expect(recent.at(119)).toEqual({ step: 110, train_loss: 2 });
  expect(recent.at(99)).toEqual({});
  expect(recent.at(null)).toEqual({ step: 120, train_loss: 1 });
  expect(rows().at(null)).toEqual({});
});

test('and the newest loss of an evaluation by then, whichever line shows it', () => {
  const recent = rows(
    { step: 100, train_loss: 3 },
    { eval_loss: 3.5 },
    { step: 110, train_loss: 2 },
    { step: 120, train_loss: 1, grad_norm: 4 },
    { step: 120, eval_loss: 1.5 },
  );
  expect(recent.at(110)).toEqual({ step: 110, train_loss: 2, eval_loss: 3.5 });
  expect(recent.at(120)).toEqual({ step: 120, train_loss: 1, grad_norm: 4, eval_loss: 1.5 });
});

test('what was printed of later steps is forgotten when the program begins anew from an earlier one', () => {
  const recent = rows(
    { step: 100, train_loss: 3 },
    { step: 110, train_loss: 2, eval_loss: 2 },
    { step: 101, train_loss: 2.9 },
  );
  expect(recent.at(115)).toEqual({ step: 101, train_loss: 2.9 });
});

test('of a long run it knows the newest steps, and evaluations for longer', () => {
  const recent = rows({ step: 0, eval_loss: 9 });
  for (let step = 1; step <= 20_000; step += 1) recent.add({ step, train_loss: step });
  expect(recent.at(17_000)).toEqual({ step: 17_000, train_loss: 17_000, eval_loss: 9 });
  expect(recent.at(5_000)).toEqual({});
});
