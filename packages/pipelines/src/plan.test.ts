import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PipelineStep } from './model.ts';
import { type InstanceLook, nextPipelineActions, type PipelineAction, type PipelineLook } from './plan.ts';

function aStep(name: string, change: Partial<PipelineStep> = {}): PipelineStep {
  return {
    name,
    group: 'steps',
    work: { kind: 'run', command: 'true' },
    jobSettings: {},
    after: [],
    inputs: [],
    outputs: [],
    forEach: null,
    when: null,
    retries: 0,
    timeoutMs: null,
    cache: null,
    ...change,
  };
}

type Known = Readonly<Record<string, InstanceLook['state'] | Partial<InstanceLook>>>;

function lookAt(
  steps: readonly PipelineStep[],
  known: Known,
  change: Partial<PipelineLook> = {},
): PipelineLook {
  return {
    steps,
    countOf: ({ forEach }) => (Array.isArray(forEach) ? forEach.length : 1),
    instanceOf: (step, index) => {
      const found = known[index === 0 ? step : `${step}.${index}`];
      const look = typeof found === 'string' ? { state: found } : found;
      const usual = { state: 'running', tries: 1, startedAtMs: 0, isExpired: false } as const;
      return look === undefined ? null : { ...usual, ...look };
    },
    isHeldBack: () => false,
    isStopping: false,
    parallel: null,
    nowMs: 1_000,
    holds: () => true,
    ...change,
  };
}

const shown = (actions: readonly PipelineAction[]) =>
  actions.map((each) => {
    if (each.kind === 'end') return `end ${each.state}`;
    const what = each.kind === 'settle' ? each.state : each.kind;
    return `${what} ${each.step}${each.index === 0 ? '' : `.${each.index}`}`;
  });

const a = aStep('a');
const b = aStep('b', { after: ['a'] });
const fedByA = aStep('b', { inputs: [{ name: 'x', kind: 'output', step: 'a', output: 'o' }] });
const alarm = aStep('alarm', { group: 'on_failure' });
const tidy = aStep('tidy', { group: 'finally' });
const fan = aStep('fan', { forEach: [1, 2, 3] });
const join = aStep('join', { after: ['fan'] });

test.each<readonly [string, readonly PipelineStep[], Known, Partial<PipelineLook>, readonly string[]]>([
  ['what waits for nothing starts', [a, b], {}, {}, ['start a']],
  ['nothing follows while a step runs', [a, b], { a: 'running' }, {}, []],
  ['the next starts after success', [a, b], { a: 'succeeded' }, {}, ['start b']],
  ['a cached step is a success', [a, b], { a: 'cached' }, {}, ['start b']],
  ['what needs a failed step is blocked', [a, b], { a: 'failed' }, {}, ['blocked b']],
  ['a step that a user has stopped has failed', [a, b], { a: 'stopped' }, {}, ['blocked b']],
  ['a step after a skipped one runs', [a, b], { a: 'skipped' }, {}, ['start b']],
  ['a step without its input is skipped', [a, fedByA], { a: 'skipped' }, {}, ['skipped b']],
  ['a condition that does not hold', [{ ...a, when: 'x' }], {}, { holds: () => false }, ['skipped a']],
  ['a condition that is unknown', [{ ...a, when: 'x' }], {}, { holds: () => null }, ['failed a']],
  ['a failure is retried', [aStep('a', { retries: 1 }), b], { a: 'failed' }, {}, ['start a']],
  [
    'as often as it may be',
    [aStep('a', { retries: 1 }), b],
    { a: { state: 'failed', tries: 2 } },
    {},
    ['blocked b'],
  ],
  ['time is up', [aStep('a', { timeoutMs: 1_000 })], { a: 'running' }, {}, ['expire a']],
  ['it is up once', [aStep('a', { timeoutMs: 1_000 })], { a: { isExpired: true } }, {}, []],
  ['time is not up', [aStep('a', { timeoutMs: 1_001 })], { a: 'running' }, {}, []],
  ['all items start', [fan, join], {}, {}, ['start fan', 'start fan.1', 'start fan.2']],
  ['as far as there is room', [fan, join], { fan: 'running' }, { parallel: 2 }, ['start fan.1']],
  [
    'the join waits for all',
    [fan, join],
    { fan: 'succeeded', 'fan.1': 'running', 'fan.2': 'succeeded' },
    {},
    [],
  ],
  [
    'the join',
    [fan, join],
    { fan: 'succeeded', 'fan.1': 'cached', 'fan.2': 'succeeded' },
    {},
    ['start join'],
  ],
  [
    'without one',
    [fan, join],
    { fan: 'succeeded', 'fan.1': 'failed', 'fan.2': 'succeeded' },
    {},
    ['blocked join'],
  ],
  ['no item at all', [fan, join], {}, { countOf: ({ name }) => (name === 'fan' ? 0 : 1) }, ['start join']],
  ['the end', [a], { a: 'succeeded' }, {}, ['end succeeded']],
  ['a failed end', [a, b], { a: 'failed', b: 'blocked' }, {}, ['end failed']],
  ['no alarm', [a, alarm, tidy], { a: 'succeeded' }, {}, ['skipped alarm']],
  ['an alarm', [a, alarm, tidy], { a: 'failed' }, {}, ['start alarm']],
  ['the last steps', [a, alarm, tidy], { a: 'failed', alarm: 'failed' }, {}, ['start tidy']],
  ['a stop', [a, b, alarm, tidy], { a: 'running' }, { isStopping: true }, ['blocked b']],
  [
    'after a stop',
    [a, alarm, tidy],
    { a: 'stopped', alarm: 'blocked' },
    { isStopping: true },
    ['start tidy'],
  ],
  [
    'the end of a stop',
    [a, tidy],
    { a: 'stopped', tidy: 'succeeded' },
    { isStopping: true },
    ['end stopped'],
  ],
  [
    'no retry after a stop',
    [aStep('a', { retries: 5 })],
    { a: 'failed' },
    { isStopping: true },
    ['end stopped'],
  ],
])('%s', (_what, steps, known, change, expected) => {
  expect(shown(nextPipelineActions(lookAt(steps, known, change)))).toEqual(expected);
});

/** Steps that need earlier ones, how often each fails before it succeeds, and the order in which running ones end. */
const someRun = fc.record({
  needs: fc.array(fc.array(fc.nat(30), { maxLength: 3 }), { minLength: 1, maxLength: 12 }),
  failures: fc.array(fc.nat(3), { minLength: 12, maxLength: 12 }),
  retries: fc.array(fc.nat(2), { minLength: 12, maxLength: 12 }),
  order: fc.array(fc.nat(100), { minLength: 40, maxLength: 40 }),
  parallel: fc.option(fc.integer({ min: 1, max: 3 })),
});

test('what is held back does not start, and takes no room from others', () => {
  const look = lookAt([fan], {}, { parallel: 1, isHeldBack: (_step, index) => index === 0 });
  expect(shown(nextPipelineActions(look))).toEqual(['start fan.1']);
});

test('whatever the graph and the failures: each step starts as often as it may, after all that it needs, and the run ends', () => {
  fc.assert(
    fc.property(someRun, ({ needs, failures, retries, order, parallel }) => {
      const steps = needs.map((earlier, index) =>
        aStep(`s${index}`, {
          after: [...new Set(index === 0 ? [] : earlier.map((each) => `s${each % index}`))],
          retries: retries[index] ?? 0,
        }),
      );
      steps.push(aStep('last', { group: 'finally' }));
      const known: Record<string, { state: InstanceLook['state']; tries: number }> = {};
      const succeeds = (name: string, tries: number) =>
        name === 'last' || tries > (failures[steps.findIndex((each) => each.name === name)] ?? 0);
      let end: string | null = null;
      for (let round = 0; end === null; round += 1) {
        expect(round).toBeLessThan(200);
        const actions = nextPipelineActions(lookAt(steps, known, { parallel }));
        for (const action of actions) {
          if (action.kind === 'end') end = action.state;
          else if (action.kind === 'settle') known[action.step] = { state: action.state, tries: 0 };
          else if (action.kind === 'start') {
            const step = steps.find(({ name }) => name === action.step);
            expect(step?.after.map((other) => known[other]?.state)).toEqual(
              step?.after.map(() => 'succeeded'),
            );
            expect(action.try).toBe((known[action.step]?.tries ?? 0) + 1);
            expect(action.try).toBeLessThanOrEqual(1 + (step?.retries ?? 0));
            known[action.step] = { state: 'running', tries: action.try };
          }
        }
        const running = Object.entries(known).filter(([, { state }]) => state === 'running');
        if (parallel !== null) expect(running.length).toBeLessThanOrEqual(parallel);
        const ending = running[(order[round % order.length] ?? 0) % Math.max(1, running.length)];
        if (ending === undefined) expect(actions.length).toBeGreaterThan(0);
        else {
          const [name, { tries }] = ending;
          known[name] = { state: succeeds(name, tries) ? 'succeeded' : 'failed', tries };
        }
      }
      // The result is that of the graph alone, whatever the order in which steps have ended.
      for (const { name, after, retries: most } of steps) {
        const isReached = after.every((other) => known[other]?.state === 'succeeded');
        const expected = isReached ? (succeeds(name, most + 1) ? 'succeeded' : 'failed') : 'blocked';
        expect(known[name]?.state).toBe(expected);
      }
      const hasFailed = Object.values(known).some(({ state }) => state === 'failed');
      expect(end).toBe(hasFailed ? 'failed' : 'succeeded');
    }),
    { numRuns: 100 },
  );
});
