import { expect, test } from 'vitest';
import type { PipelineParameter } from '../model.ts';
import { kubeflowCondition, pythonCondition, splitCondition } from './conditions.ts';

const params: readonly PipelineParameter[] = [
  { name: 'lr', type: 'float', default: null },
  { name: 'n', type: 'int', default: null },
  { name: 'fast', type: 'bool', default: null },
  { name: 'tags', type: 'list', default: null },
];

test.each([
  ['lr<0.1 && n>3', `params["lr"] < 0.1 and params["n"] > 3`],
  [`!fast || "n" in tags`, `not params["fast"] or "n" in params["tags"]`],
  [`!(fast == true)`, `not ( params["fast"] == True )`],
  ['n in [1, 2]', `params["n"] in [ 1 , 2 ]`],
])('%s is the same in Python', (condition, expected) => {
  expect(pythonCondition(condition, params)).toBe(expected);
});

test.each([
  [`steps.train == 'succeeded'`],
  ['n / 2 == 1'],
  ['n < 3 == fast'],
  ['!n == 3'],
  ['size(tags) > 1'],
  ['tags.exists(t, t == "a")'],
  [`fast ? n > 1 : n > 2`],
  [String.raw`"\u{41}" in tags`],
  ['lr < 0.1; import os'],
  ['"""a""" in tags #'],
])('%s is not', (condition) => {
  expect(pythonCondition(condition, params)).toBeNull();
});

test('Kubeflow asks for the values of inputs, and not for states of steps', () => {
  expect(kubeflowCondition(`n > 1 && tags.exists(t, t == 'n')`, params)).toBe(
    `int(inputs.parameter_values['n']) > 1 && inputs.parameter_values['tags'] . exists ( t , t == 'n' )`,
  );
  expect(kubeflowCondition(`steps['a'] == 'failed'`, params)).toBeNull();
});

test.each([
  [`lr < 0.1 && steps.train == 'succeeded'`, { succeeded: ['train'], rest: 'lr < 0.1' }],
  [
    `steps["train-a"] == "succeeded" && steps['train'] == 'succeeded'`,
    { succeeded: ['train-a', 'train'], rest: null },
  ],
  [`steps.train == 'succeeded' || fast`, null],
  [`(fast && steps.train == 'succeeded')`, null],
  [`steps.other == 'succeeded'`, null],
  [`steps.train != 'succeeded'`, null],
  [`"&& steps.train == 'succeeded'" == 'x'`, null],
])('what %s asks of steps that it waits for is told apart', (condition, expected) => {
  expect(splitCondition(condition, ['train', 'train-a'])).toEqual(
    expected ?? { succeeded: [], rest: condition },
  );
});
