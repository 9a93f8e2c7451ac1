import { MusterError } from '@muster/common/errors';
import type { SweepView, TrialView } from '@muster/common/sweeps';
import type { MusterApi } from '@muster/common/wire/client';
import { expect, test } from 'vitest';
import { answerBytesMax, jsonBytes } from '../size.ts';
import { fakeApi, openSession, someMs } from '../testing/session.ts';

const usual = {
  name: 'tune',
  trials: 20,
  maxFailures: 3,
  objective: { metric: 'eval_loss', goal: 'min' },
  earlyStopping: { rule: 'asha', min_steps: 100 },
  parameters: { lr: { type: 'float', min: 1e-5, max: 0.1, log: true } },
  job: { command: ['python', 'train.py', '--lr={lr}'], resources: { gpus: 1 } },
};

function aTrial(number: number, given: Partial<TrialView> = {}): TrialView {
  return {
    number,
    state: 'complete',
    params: { lr: 0.01 },
    earlierJobs: [],
    jobId: `job_${String(number).padStart(12, '0')}`,
    value: 1 / (number + 1),
    deviation: null,
    furtherValues: [],
    furtherDeviations: [],
    seeds: [],
    step: 100,
    cause: null,
    lost: null,
    awaits: null,
    startedAtMs: someMs,
    endedAtMs: someMs,
    ...given,
  };
}

function aSweep(given: Partial<SweepView> = {}): SweepView {
  return {
    id: 'swp_00000000000a',
    name: 'tune',
    user: 'ann',
    project: 'default',
    state: 'running',
    reason: null,
    spec: { sampler: 'tpe', objective: { metric: 'eval_loss', goal: 'min', of: 'last' } },
    createdAtMs: someMs,
    endedAtMs: null,
    trials: 20,
    running: 2,
    complete: 1,
    paused: 0,
    incomplete: 0,
    awaits: null,
    pruned: 0,
    infeasible: 0,
    failed: 0,
    stopped: 0,
    best: aTrial(0),
    use: {
      trials: 2,
      trialsLimit: 20,
      gpuHours: 3.5,
      gpuHoursLimit: 100,
      usd: null,
      usdLimit: null,
      wallClockHours: 1.25,
      wallClockHoursLimit: null,
    },
    ...given,
  };
}

/** Remembers what was started, stopped and extended. */
function sweeps(sweep: SweepView, trials: readonly TrialView[] = []) {
  const calls: unknown[][] = [];
  const api: MusterApi = fakeApi({
    createSweep: ({ specJson, ...rest }) => {
      calls.push(['create', JSON.parse(specJson), rest]);
      return Promise.resolve(sweep);
    },
    getSweep: () => Promise.resolve(sweep),
    listTrials: () => Promise.resolve(trials),
    stopSweep: (id, reason) => {
      calls.push(['stop', id, reason]);
      return Promise.resolve({ ...sweep, state: 'stopping' });
    },
    extendSweep: (id, by, requestId) => {
      calls.push(['extend', id, by, requestId]);
      return Promise.resolve({ ...sweep, trials: sweep.trials + by });
    },
  });
  return { api, calls };
}

test('a sweep is started as its file has it, once for a request id', async () => {
  const { api, calls } = sweeps(aSweep());
  const session = await openSession(api);
  const given = { ...usual, settings: { budget: { trials: 5 } }, requestId: 'r-1' };
  const { data, text } = await session.call('sweep_start', given);
  const { maxFailures: max_failures, earlyStopping: early_stopping, ...rest } = usual;
  const file = { ...rest, max_failures, early_stopping, budget: { trials: 5 } };
  expect(calls).toEqual([['create', file, { requestId: 'r-1', dryRun: false }]]);
  expect(data).toMatchObject({
    dryRun: false,
    sweep: { sweepId: 'swp_00000000000a', objective: 'min eval_loss', best: { trial: 0, value: 1 } },
  });
  expect(text).toBe('Started swp_00000000000a with 20 trials. Follow it with sweep_get.');
  const dry = await session.call('sweep_start', { ...usual, dry_run: true });
  expect(calls[1]).toMatchObject(['create', {}, { dryRun: true }]);
  expect(dry.text).toMatch(/^Dry run, nothing was started/);
});

test('what is wrong with a sweep is told with the name that the agent has given it', async () => {
  const problem = (path: string) => ({ path, message: 'is wrong', expected: null, suggestion: null });
  const paths = ['max_failures', 'job.max_runtime', 'parameters.my_lr.min', 'early_stopping.min_steps'];
  const createSweep = () =>
    Promise.reject(new MusterError('invalid', 'invalid sweep', { problems: paths.map(problem) }));
  const session = await openSession(fakeApi({ createSweep }));
  const { isError, text } = await session.call('sweep_start', usual);
  expect(isError).toBe(true);
  for (const each of ['maxFailures', 'job.max_runtime', 'parameters.my_lr.min', 'earlyStopping.min_steps'])
    expect(text).toContain(`- ${each}: is wrong`);
  const { text: missing } = await session.call('sweep_start', { trials: 5, job: usual.job });
  expect(missing).toMatch(/- parameters: /);
});

test('trials are listed best first, in pages, each within the size of an answer', async () => {
  const long = '💥"'.repeat(300);
  const params = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`p${index}`, long]));
  const all = [
    ...Array.from({ length: 60 }, (_, number) => aTrial(number, { params })),
    aTrial(60, { state: 'pruned', value: 0, params }),
    aTrial(61, { state: 'running', value: null, params }),
  ];
  const session = await openSession(sweeps(aSweep(), all).api);
  const numbers: number[] = [];
  let cursor: string | null = null;
  do {
    const answer = await session.call('sweep_trials', {
      sweepId: 'tune',
      limit: 100,
      ...(cursor === null ? {} : { cursor }),
    });
    expect(jsonBytes(answer.data) + Buffer.byteLength(answer.text)).toBeLessThan(answerBytesMax);
    const data: { trials: { trial: number; parametersNotShown: number }[]; nextCursor: string | null } =
      answer.data;
    numbers.push(...data.trials.map(({ trial }) => trial));
    expect(data.trials[0]?.parametersNotShown).toBeGreaterThan(90);
    cursor = data.nextCursor;
  } while (cursor !== null);
  expect(numbers).toEqual([...Array.from({ length: 60 }, (_, index) => 59 - index), 60, 61]);
  const { data } = await session.call('sweep_trials', {
    sweepId: 'tune',
    states: ['pruned', 'running'],
    order: 'number',
  });
  expect(data).toMatchObject({ total: 2, trials: [{ trial: 60 }, { trial: 61 }] });
});

test('with a goal to maximise, the largest value comes first', async () => {
  const sweep = aSweep({ spec: { sampler: 'tpe', objective: { metric: 'tokens_per_second', goal: 'max' } } });
  const session = await openSession(sweeps(sweep, [aTrial(1), aTrial(0)]).api);
  const { data } = await session.call('sweep_trials', { sweepId: 'tune' });
  expect(data).toMatchObject({ trials: [{ trial: 0 }, { trial: 1 }] });
});

test('a stop is tried dry, repeated without harm, and refused of what is done', async () => {
  const running = sweeps(aSweep());
  const session = await openSession(running.api);
  const dry = await session.call('sweep_stop', { sweepId: 'tune', dryRun: true });
  expect(dry.text).toBe('Dry run, nothing was stopped. 2 trials would be.');
  expect(running.calls).toEqual([]);
  await session.call('sweep_stop', { sweepId: 'tune', reason: 'enough' });
  expect(running.calls).toEqual([['stop', 'swp_00000000000a', 'enough']]);
  const stopped = sweeps(aSweep({ state: 'stopped' }));
  const again = await (await openSession(stopped.api)).call('sweep_stop', { sweepId: 'tune' });
  expect(again.text).toBe('swp_00000000000a had been stopped before.');
  expect(stopped.calls).toEqual([]);
  const done = await (await openSession(sweeps(aSweep({ state: 'done' })).api)).call('sweep_stop', {
    sweepId: 'tune',
    dryRun: true,
  });
  expect(done.text).toMatch(/failed_precondition.*is done.*\n*Next: .*sweep_get/s);
});

test('an extension is tried dry, and refused of a grid', async () => {
  const running = sweeps(aSweep());
  const session = await openSession(running.api);
  const dry = await session.call('sweep_extend', { sweepId: 'tune', trials: 5, dryRun: true });
  expect(dry.data).toMatchObject({ dryRun: true, sweep: { trials: 25 } });
  expect(running.calls).toEqual([]);
  const { data } = await session.call('sweep_extend', { sweepId: 'tune', trials: 5, requestId: 'r-2' });
  expect(data).toMatchObject({ dryRun: false, sweep: { trials: 25 } });
  expect(running.calls).toEqual([['extend', 'swp_00000000000a', 5, 'r-2']]);
  const grid = sweeps(aSweep({ spec: { sampler: 'grid' } }));
  const refused = await (await openSession(grid.api)).call('sweep_extend', {
    sweepId: 'tune',
    trials: 5,
    dryRun: true,
  });
  expect(refused).toMatchObject({
    isError: true,
    text: expect.stringMatching(/failed_precondition.*of a grid/),
  });
});

test('sweeps are listed and shown in short', async () => {
  const all = Array.from({ length: 40 }, (_, index) => aSweep({ name: `tune-${index}` }));
  const session = await openSession(
    fakeApi({
      listSweeps: () => Promise.resolve({ sweeps: all, more: false }),
      getSweep: () => Promise.resolve(aSweep({ state: 'failed', reason: 'the last 5 trials have failed' })),
    }),
  );
  const list = await session.call('sweep_list', { limit: 50 });
  expect(jsonBytes(list.data)).toBeLessThan(answerBytesMax);
  expect(list.data).toMatchObject({ nextCursor: expect.any(String) });
  const shown = await session.call('sweep_get', { sweepId: 'tune' });
  expect(shown.text).toContain(
    'is failed: the last 5 trials have failed; 2 of 20 trials run, and trial 0 is',
  );
});
