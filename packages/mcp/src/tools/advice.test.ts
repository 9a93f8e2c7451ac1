import { adviseOn } from '@muster/advice/file/advise';
import { gpuTable } from '@muster/advice/gpus';
import { expect, test } from 'vitest';
import { answerBytesMax, jsonBytes } from '../size.ts';
import { fakeApi, openSession } from '../testing/session.ts';

const asked: unknown[] = [];
const api = fakeApi({
  async advise(contextJson) {
    const value: unknown = JSON.parse(contextJson);
    asked.push(value);
    const outcome = adviseOn(value, gpuTable);
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.findings));
    return outcome.answer;
  },
});

const context = {
  data_size_gb: 1,
  model: { parameters: '70B' },
  compute_requirements: { gpu_type: 'h100', gpu_count: 64, interconnect: 'infiniband' },
};

test.each([
  ['configure_distributed', { strategy: 'deepspeed', world_size: 64, backend: 'nccl' }],
  ['tune_hyperparameters', null],
  ['manage_compute', null],
])('%s gives the results of the contract in an answer of bounded size', async (name, distributed) => {
  const { call, client } = await openSession(api);
  const answer = await call(name, { task_type: name, training_context: context });
  expect([answer.isError, answer.text]).toEqual([false, expect.stringMatching(/\w/)]);
  expect(asked.at(-1)).toEqual({ task_type: name, training_context: context });
  expect(answer.data).toMatchObject({
    task_type: name,
    distributed_config: distributed,
    tuning_results: name === 'tune_hyperparameters' ? { trials_completed: 0 } : null,
  });
  expect(jsonBytes(answer)).toBeLessThan(answerBytesMax);
  const listed = (await client.listTools()).tools.find((each) => each.name === name);
  expect(listed?.annotations).toMatchObject({ readOnlyHint: true, idempotentHint: true });
});

test('a pipeline, and each of its programs in pieces', async () => {
  const { call } = await openSession(api);
  const trainingContext = { framework: 'pytorch', data: { path: '/data/train.csv' } };
  const whole = await call('design_pipeline', { task_type: 'design_pipeline', trainingContext });
  expect(jsonBytes(whole)).toBeLessThan(answerBytesMax);
  expect(whole.data).toMatchObject({ pipeline_config: { orchestrator: 'muster' }, tuning_results: null });
  for (const { name } of (whole.data as { files: readonly { readonly name: string }[] }).files) {
    let text = '';
    for (let offset: number | null = 0; offset !== null; ) {
      const piece = await call('design_pipeline', { trainingContext, file: name, offset });
      expect(jsonBytes(piece)).toBeLessThan(answerBytesMax);
      const { fileText, nextOffset } = piece.data as { fileText: string; nextOffset: number | null };
      text += fileText;
      offset = nextOffset;
    }
    const written = adviseOn({ task_type: 'design_pipeline', training_context: trainingContext }, gpuTable);
    expect(written).toMatchObject({
      answer: { files: expect.arrayContaining([expect.objectContaining({ name, text })]) as unknown },
    });
  }
});

test('an AutoML run, with the file that starts it', async () => {
  const { call } = await openSession(api);
  const trainingContext = {
    model_type: 'tabular',
    framework: 'sklearn',
    data: { path: '/data/train.csv', target: 'price' },
    constraints: { time: '30m', parallel: 4 },
  };
  const answer = await call('setup_automl', { task_type: 'setup_automl', training_context: trainingContext });
  expect(answer).toMatchObject({
    isError: false,
    data: {
      task_type: 'setup_automl',
      pipeline_config: { orchestrator: 'muster' },
      distributed_config: null,
      tuning_results: { best_params: {}, best_score: null, trials_completed: 0 },
      // Half an hour of half a machine at 0.40 USD an hour.
      cost_estimate: { estimated_duration_hours: 0.5, total_cost_usd: 0.1 },
      models: ['linear', 'forest', 'extra_trees', 'boosting', 'mlp'],
      taskFile: expect.stringContaining('"path":"/data/train.csv"') as unknown,
    },
  });
  expect(jsonBytes(answer)).toBeLessThan(answerBytesMax);
  const other = await call('setup_automl', { trainingContext: { ...trainingContext, model_type: 'cv' } });
  expect(other).toMatchObject({ isError: true, text: expect.stringContaining('modelType') as unknown });
});

test('a search space of a hundred parameters does not burst the answer', async () => {
  const { call } = await openSession(api);
  const names = Array.from({ length: 100 }, (_, index) => `a_parameter_with_a_long_name_${index}`);
  const search_space = Object.fromEntries(names.map((name) => [name, ['first value', 'second value']]));
  const answer = await call('tune_hyperparameters', { trainingContext: { tuning: { search_space } } });
  expect(answer.isError).toBe(false);
  expect(jsonBytes(answer)).toBeLessThan(answerBytesMax);
  expect(answer.data).toMatchObject({ sweepFile: null });
});

test('the text of one file comes when it is named', async () => {
  const { call } = await openSession(api);
  const given = { trainingContext: context, file: 'deepspeed-zero3.json' };
  const { data } = await call('configure_distributed', given);
  expect(JSON.parse((data as { fileText: string }).fileText)).toMatchObject({
    zero_optimization: { stage: 3 },
  });
  const none = await call('configure_distributed', { ...given, file: 'ds.json' });
  expect([none.isError, none.text]).toEqual([
    true,
    expect.stringContaining('there is no "ds.json"; there are muster-job.yaml'),
  ]);
});

test('a wrong value is refused before any call, with its place', async () => {
  const { call } = await openSession(fakeApi({}));
  const wrong = { trainingContext: { ...context, compute_requirements: { gpu_count: 0 } } };
  const { text, isError } = await call('configure_distributed', wrong);
  expect(isError).toBe(true);
  expect(text).toContain('trainingContext.computeRequirements.gpuCount: a whole number from 1 to 128');
});
