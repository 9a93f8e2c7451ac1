import { expect, test } from 'vitest';
import { aTrainingContext } from './file/contextFixture.ts';
import { tuningSources, usualLearningRate, usualSpace } from './tuningSpace.ts';

test.each([
  [125e6, 6e-4],
  [350e6, 3e-4],
  [1.3e9, 2e-4],
  [6.7e9, 1.2e-4],
  [13e9, 1e-4],
  [175e9, 0.6e-4],
])('the learning rate for %d parameters is near the published %d', (parameters, published) => {
  const ratio = usualLearningRate(parameters) / published;
  expect(ratio).toBeGreaterThan(2 / 3);
  expect(ratio).toBeLessThan(3 / 2);
});

test('trees of large data may be deeper, and large models are trained without dropout', () => {
  const depthOf = (data_size_gb: number) =>
    usualSpace(aTrainingContext({ framework: 'xgboost', data_size_gb }, 'tune_hyperparameters')).find(
      ({ name }) => name === 'max_depth',
    )?.range;
  expect([depthOf(0.1), depthOf(10)]).toEqual([
    { type: 'int', min: 3, max: 10 },
    { type: 'int', min: 3, max: 12 },
  ]);
  const namesOf = (parameters: string) =>
    usualSpace(aTrainingContext({ model: { parameters } }, 'tune_hyperparameters')).map(({ name }) => name);
  expect([namesOf('350M').includes('dropout'), namesOf('7B').includes('dropout')]).toEqual([true, false]);
  expect(tuningSources.length).toBeGreaterThan(0);
});
