import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { adviceCalls } from './advice.ts';

const admin = { kind: 'admin', id: 'admin', peer: null } as const;
const context = { data_size_gb: 1, model: { parameters: '7B' } };

async function advise(value: unknown, prices: Parameters<typeof adviceCalls>[0]['prices'] = []) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const { answer } = await adviceCalls({ prices }).Advise.handle({ contextJson: text }, admin);
  return JSON.parse(answer ?? '') as Readonly<Record<string, unknown>>;
}

test('an answer has the four results, null where its question has none, at the prices of the cluster', async () => {
  const question = { task_type: 'manage_compute', training_context: context };
  expect(await advise(question)).toMatchObject({
    task_type: 'manage_compute',
    pipeline_config: null,
    distributed_config: null,
    tuning_results: null,
    cost_estimate: { hourly_cost_usd: 20 },
  });
  const prices = [
    { of: 'type', name: 'a100', usdPerHour: 2 },
    { of: 'node', name: 'a100', usdPerHour: 99 },
  ] as const;
  expect(await advise(question, prices)).toMatchObject({ cost_estimate: { hourly_cost_usd: 8 } });
});

test('AutoML is a question as the others are', async () => {
  const training_context = { data: { path: '/data/train.csv', target: 'price' } };
  expect(await advise({ task_type: 'setup_automl', training_context })).toMatchObject({
    task_type: 'setup_automl',
    pipeline_config: { orchestrator: 'muster', steps: [{ name: 'profile' }, { name: 'trials' }, {}] },
    distributed_config: null,
    cost_estimate: null,
    dir: '/data/train.csv.automl',
  });
});

test.each<readonly [unknown, string, string]>([
  [
    { task_type: 'setup_automl', training_context: { data: { path: 'train.csv', target: 'price' } } },
    'training_context.data.path',
    'got "train.csv"',
  ],
  [{ task_type: 'tune', training_context: context }, 'task_type', 'got "tune"'],
  ['{', '', 'context_json is not JSON'],
  ['{"a": "'.padEnd(65_536, 'x') + '"}', '', 'the training context has 65538 bytes; at most 65536'],
  [{ training_context: context }, 'task_type', 'missing'],
  [
    { task_type: 'configure_distributed', training_context: context },
    'training_context.compute_requirements.gpu_count',
    'missing',
  ],
  [[], '', 'got an empty list'],
])('what is wrong is refused with its place: %j', async (value, path, message) => {
  const error = await advise(value).catch((each: unknown) => each);
  expect(error).toBeInstanceOf(MusterError);
  const { code, problems, message: whole } = error as MusterError;
  expect(code).toBe('invalid');
  if (problems.length === 0) expect(whole).toBe(message);
  else expect(problems[0]).toMatchObject({ path, message });
});
