import type { TrialView } from '@muster/common/sweeps';
import type { Parameter } from '@muster/experiments/space';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '../../../../../test/support/anyText.ts';
import { problemOfMarkup } from '../../testing/markup.ts';
import { plotNames } from './names.ts';
import { plotPage, plotSvg } from './page.ts';
import type { SweepPlotData } from './plots.ts';
import { axisTicks, numberText, rangeOf } from './scale.ts';

const parameters: readonly Parameter[] = [
  { name: 'lr', type: 'float', min: 1e-5, max: 0.1, log: true, step: null, when: {} },
  { name: 'optimizer', type: 'categorical', values: ['adam', 'sgd'], when: {} },
  { name: 'momentum', type: 'float', min: 0, max: 1, log: false, step: null, when: { optimizer: ['sgd'] } },
];

function aTrial(number: number, given: Partial<TrialView> = {}): TrialView {
  return {
    number,
    state: 'complete',
    params: { lr: 0.01, optimizer: 'adam' },
    jobId: `job_${number}`,
    value: 1 / (number + 1),
    deviation: null,
    furtherValues: [],
    furtherDeviations: [],
    seeds: [],
    step: 10,
    cause: null,
    lost: null,
    awaits: null,
    earlierJobs: [],
    startedAtMs: 0,
    endedAtMs: 0,
    ...given,
  };
}

function someData(given: Partial<SweepPlotData> = {}): SweepPlotData {
  const trials = [aTrial(0), aTrial(1, { params: { lr: 0.1, optimizer: 'sgd', momentum: 0.5 } }), aTrial(2)];
  return {
    metric: 'eval_loss',
    goal: 'min',
    parameters,
    trials,
    curves: trials.map(({ number }) => ({
      trial: number,
      points: [1, 2, 3].map((step) => ({ step, value: 1 / step })),
    })),
    importance: { trials: 3, parameters: [{ name: 'lr', share: 0.75 }] },
    ...given,
  };
}

const sweep = { id: 'swp_1', name: 'tune', state: 'done' } as const;

test('each plot is well-formed, and says what it shows', () => {
  const texts = plotNames.map((name) => plotSvg(name, someData()));
  expect(texts.map(problemOfMarkup)).toEqual(plotNames.map(() => null));
  const [parallel = '', curves = '', history = '', importance = ''] = texts;
  expect(parallel.match(/<path /g)).toHaveLength(3);
  expect(parallel).toContain('trial 1: 0.5; lr=0.1, optimizer=sgd, momentum=0.5');
  expect(parallel).toContain('the parameter does not apply');
  expect(curves.match(/<path /g)).toHaveLength(3);
  expect(history.match(/<circle /g)).toHaveLength(3);
  expect(importance).toContain('75 %');
});

test('the best trial is the one with the best value of the goal', () => {
  const bestIn = (goal: 'min' | 'max') =>
    /<path [^>]*stroke="#d1495b"[^>]*><title>(trial \d)/.exec(plotSvg('curves', someData({ goal })));
  expect([bestIn('min')?.[1], bestIn('max')?.[1]]).toEqual(['trial 2', 'trial 0']);
});

test('without a value, each plot says so', () => {
  const empty = someData({ trials: [], curves: [], importance: { trials: 0, parameters: [] } });
  for (const name of plotNames) {
    const text = plotSvg(name, empty);
    expect(problemOfMarkup(text)).toBeNull();
    expect(text).toMatch(/No trial|tell nothing/);
  }
});

test('a page is one file: nothing is loaded, nothing runs, and no name becomes markup', () => {
  const hostile = anyText(0, 20).map((text) => `"'><script>&${text}`);
  const numbers = fc.double();
  fc.assert(
    fc.property(hostile, hostile, numbers, (name, value, number) => {
      const trials = [aTrial(0, { params: { [name]: value, lr: number }, value: number }), aTrial(1)];
      const page = plotPage(
        { ...sweep, name },
        someData({
          metric: name,
          parameters: [...parameters, { name, type: 'categorical', values: [value, 'b'], when: {} }],
          trials,
          curves: [{ trial: 0, points: [{ step: 1, value: number }] }],
          importance: { trials: 2, parameters: [{ name, share: 0.5 }] },
        }),
      );
      expect(problemOfMarkup(page)).toBeNull();
      expect(page).not.toMatch(/<script|javascript:|href=|src=|url\(|@import| on\w+="/i);
      expect(page).not.toMatch(/ (?:d|x|y|x1|x2|y1|y2|cx|cy|width)="[^"]*(?:NaN|Infinity)/);
    }),
    { numRuns: 60 },
  );
});

test('an axis has round numbers within its range', () => {
  expect(axisTicks({ min: 0, max: 1 })).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(axisTicks({ min: -3, max: 7 })).toEqual([-2, 0, 2, 4, 6]);
  fc.assert(
    fc.property(
      fc.double({ noNaN: true, min: -1e12, max: 1e12 }),
      fc.double({ noNaN: true, min: 1e-3, max: 1e12 }),
      (min, size) => {
        const ticks = axisTicks({ min, max: min + size });
        expect(ticks.length).toBeLessThanOrEqual(20);
      },
    ),
    { numRuns: 100 },
  );
});

test('one value far away does not hide the others', () => {
  expect(rangeOf([1, 2, 3, 4, 1e9])?.max).toBeLessThan(20);
  expect(rangeOf([5])).toEqual({ min: 4.5, max: 5.5 });
  expect(rangeOf([Number.NaN, Infinity])).toBeNull();
  expect([numberText(0.00001234567), numberText(123_456), numberText(2)]).toEqual(['1.23e-5', '123500', '2']);
});
