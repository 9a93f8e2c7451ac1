import type { MetricSeries } from '@muster/common/telemetry';
import { array, assert, boolean, constantFrom, integer, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { aggregated } from '../metricQuery/aggregate.ts';
import { ClosedSteps, stepGraceMs } from './closedSteps.ts';

const stepMs = 60_000;
const shape = { aggregation: 'mean', by: 'all', stepMs } as const;
const all = { attempt: null, nodeRank: null, node: '', gpuUuid: '' } as const;

function ofNode(node: string, ...points: readonly (readonly [atMs: number, value: number])[]): MetricSeries {
  return { ...all, node, points: points.map(([atMs, value]) => ({ atMs, value })) };
}

test('a step is told once, when what belongs to it has arrived', () => {
  const steps = new ClosedSteps(shape, 0);
  steps.add([ofNode('node-1', [10_000, 1], [60_000, 3], [60_001, 9])]);
  steps.add([ofNode('node-2', [20_000, 8])]);
  expect(steps.waitMs(30_000)).toBe(30_000 + stepGraceMs);
  expect(steps.take(stepMs + stepGraceMs - 1)).toBeNull();
  const points = [{ atMs: stepMs, value: 4 }];
  expect(steps.take(stepMs + stepGraceMs)).toEqual({ series: [{ ...all, points }], position: '60000' });
  expect(steps.take(stepMs + stepGraceMs)).toBeNull();
  steps.add([ofNode('node-2', [59_000, 5])]);
  expect(steps.take(2 * stepMs + stepGraceMs)?.series[0]?.points, 'it came too late').toEqual([
    { atMs: 2 * stepMs, value: 9 },
  ]);
  expect(steps.waitMs(0)).toBeNull();
  expect(steps.take(9 * stepMs), 'steps without values are no message').toBeNull();
});

test('what waits for the end of a step is bounded, with a remedy', () => {
  const steps = new ClosedSteps({ ...shape, stepMs: 1e9 }, 0);
  const points = Array.from({ length: 250_001 }, (_, index) => ({ atMs: index + 1, value: 1 }));
  expect(() => steps.add([{ ...all, points }])).toThrow(/use a shorter step_ms/);
});

test('however values arrive and whenever it is resumed, the steps are those of one question', () => {
  const arrival = record({
    node: constantFrom('node-1', 'node-2'),
    afterMs: integer({ min: 0, max: 90_000 }),
    value: integer({ min: 0, max: 9 }),
    isResumed: boolean(),
  });
  assert(
    property(array(arrival, { maxLength: 30 }), (arrivals) => {
      let nowMs = 0;
      let position = 0;
      let steps = new ClosedSteps(shape, 0);
      const arrived: MetricSeries[] = [];
      const sent: MetricSeries['points'][number][] = [];
      const take = () => {
        const update = steps.take(nowMs);
        if (update === null) return;
        sent.push(...(update.series[0]?.points ?? []));
        position = Number(update.position);
      };
      for (const { node, afterMs, value, isResumed } of arrivals) {
        nowMs += afterMs;
        if (isResumed) {
          steps = new ClosedSteps(shape, position);
          steps.add(arrived);
        }
        arrived.push(ofNode(node, [nowMs, value]));
        steps.add(arrived.slice(-1));
        take();
      }
      nowMs += stepMs + stepGraceMs;
      take();
      const asked = aggregated(arrived, { ...shape, toMs: Number.POSITIVE_INFINITY });
      // A value of the moment 0 is before what was asked for.
      const wanted = asked.flatMap(({ points }) => points).filter(({ atMs }) => atMs > 0);
      expect(sent).toEqual(wanted);
    }),
    { numRuns: 100 },
  );
});
