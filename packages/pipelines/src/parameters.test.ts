import { expect, test } from 'vitest';
import type { PipelineParameter } from './model.ts';
import { completeValues } from './parameters.ts';

const params: readonly PipelineParameter[] = [
  { name: 'data', type: 'string', default: null },
  { name: 'epochs', type: 'int', default: 3 },
  { name: 'seeds', type: 'list', default: [1] },
];

test('what a run does not give has its default', () => {
  expect(completeValues(params, { data: '/d', seeds: ['a', 2] })).toEqual({
    ok: true,
    values: { data: '/d', epochs: 3, seeds: ['a', 2] },
  });
});

test('unknown names, missing values and wrong types are told together', () => {
  expect(completeValues(params, { epoch: 1, epochs: '4', seeds: [null] })).toEqual({
    ok: false,
    problems: [
      'param "epoch": unknown; did you mean "epochs"?',
      'param "data": missing; give it with --param data=VALUE',
      'param "epochs": got "4"; expected a whole number',
      'param "seeds": got a list; expected a list of at most 1000 texts and numbers',
    ],
  });
});
