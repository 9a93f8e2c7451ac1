import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJobSpec } from '@muster/common/spec/parse';
import { readSweep } from '@muster/experiments/file/sweepFile';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { newCall } from '../testing/testContext.ts';

/** Without a coordinator anywhere. */
async function advise(argv: readonly string[], file: string | null = null) {
  const call = newCall(null);
  if (file !== null) writeFileSync(join(call.home, 'context.yaml'), file);
  const again = async (words: readonly string[]) => runCli(['advise', ...words], call.context);
  const exitCode = await again(argv);
  return { exitCode, stdout: call.stdout(), stderr: call.stderr(), home: call.home, again, call };
}

const context = `task_type: configure_distributed
training_context:
  model_type: nlp
  data_size_gb: 1
  model: {parameters: 7B}
  compute_requirements: {gpu_type: a100, gpu_count: 4, memory_gb: 80}
  training_config: {batch_size: 64}
`;

test('a strategy, from a file', async () => {
  const { exitCode, stdout, stderr } = await advise(['distributed', '-f', 'context.yaml'], context);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: '' });
  expect(stdout).toContain(
    'Strategy    ZeRO stage 2 (deepspeed)\nWorld size  4 × A100-SXM4-80GB, backend nccl\n',
  );
  // 14 GB of weights, a fourth of 14 GB of gradients and of 84 GB of the optimizer.
  expect(stdout).toMatch(/ZeRO stage 2 +14\.0 GB +3\.5 GB +21\.0 GB .* chosen\n/);
  expect(stdout).toContain('Rajbhandari and others 2020');
});

test('flags win over the file, and --json is what -o json prints', async () => {
  const flags = ['distributed', '-f', 'context.yaml', '--gpu-type', 'h100', '--gpus', '8'];
  const { exitCode, stdout } = await advise([...flags, '--json'], context);
  expect(exitCode).toBe(exitCodes.ok);
  const answer = JSON.parse(stdout) as object;
  expect(answer).toMatchObject({ gpu: 'H100-SXM5-80GB' });
  expect((answer as { distributed_config: unknown }).distributed_config).toEqual({
    strategy: 'deepspeed',
    world_size: 8,
    backend: 'nccl',
  });
  expect((await advise([...flags, '-o', 'json'], context)).stdout).toBe(stdout);
});

test('problems have their line or their flag', async () => {
  const wrong = context.replace('gpu_count: 4', 'gpu_cuont: 4').replace('memory_gb: 80', 'memory_gb: 60');
  const inFile = await advise(['distributed', '-f', 'context.yaml'], wrong);
  expect(inFile.exitCode).toBe(exitCodes.usage);
  expect(inFile.stderr).toContain(
    'context.yaml:6:42  training_context.compute_requirements.gpu_cuont: unknown key; did you mean "gpu_count"?',
  );
  const inFlag = await advise(['distributed', '--parameters', '7B', '--gpu-type', 'a100', '--gpus', '0']);
  expect(inFlag.exitCode).toBe(exitCodes.usage);
  expect(inFlag.stderr).toContain('--gpus  got 0; expected a whole number from 1 to 128');
  const batch = await advise(
    ['distributed', '-f', 'context.yaml', '--gpus', '8'],
    context.replace('64', '4'),
  );
  expect(batch.stderr).toContain(
    'context.yaml:7:33  training_context.training_config.batch_size: 4 samples are fewer than the 8 data-parallel ranks',
  );
  const empty = await advise(['compute', '-f', 'context.yaml'], '');
  expect(empty.stderr).toContain('empty; expected a training context: task_type and training_context');
});

test('where nothing fits, it says what would, and exits with 1', async () => {
  const { exitCode, stdout } = await advise([
    'distributed',
    '--parameters',
    '70B',
    '--gpu-type',
    't4',
    '--gpus',
    '4',
  ]);
  expect(exitCode).toBe(exitCodes.problemFound);
  expect(stdout).toMatch(/Would fit on\n {2}\d+ × T4 with/);
});

test('--write writes the files once and overwrites none', async () => {
  const words = ['distributed', '-f', 'context.yaml', '--write', 'launch'];
  const { exitCode, stderr, home, again, call } = await advise(words, context);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: 'Wrote 9 files into launch.\n' });
  const path = join(home, 'launch');
  const before = readdirSync(path).map((name) => [name, readFileSync(join(path, name), 'utf8')]);
  expect(parseJobSpec(readFileSync(join(path, 'muster-job.yaml'), 'utf8')).ok).toBe(true);
  expect(statSync(join(path, 'torchrun-ddp.sh')).mode & 0o111).toBe(0o111);
  expect(await again([...words, '--gpus', '8'])).toBe(exitCodes.refused);
  expect(call.stderr()).toContain('launch already has muster-job.yaml');
  expect(readdirSync(path).map((name) => [name, readFileSync(join(path, name), 'utf8')])).toEqual(before);
});

test('GPUs, time and cost, with own prices', async () => {
  const { exitCode, stdout } = await advise(['compute', '--parameters', '7B', '--data-size', '1']);
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toContain(
    'GPUs         4 × A100-SXM4-80GB, ZeRO stage 2\nDuration     4.7 to 7.8 h, about 5.8 h\n',
  );
  const flags = [
    'compute',
    '--parameters',
    '7B',
    '--data-size',
    '1',
    '--prices',
    'A100-SXM4-80GB=2.5',
    '--json',
  ];
  const own = JSON.parse((await advise(flags)).stdout) as { cost_estimate: object };
  expect(own.cost_estimate).toMatchObject({ hourly_cost_usd: 10 });
  const unknown = await advise(['compute', '--parameters', '7B', '--prices', 'node:a=1']);
  expect(unknown.stderr).toContain('--prices takes a part of the name of a GPU here; got "a"');
});

test('a sweep file, which the check of sweeps takes', async () => {
  const words = ['tuning', '--framework', 'xgboost', '--data-size', '1', '--write', 'sweep'];
  const { exitCode, stdout, stderr, home } = await advise(words);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: 'Wrote 1 file into sweep.\n' });
  expect(stdout).toMatch(/Trials +70, tpe\n/);
  expect(stdout).toMatch(/eta +0.01 to 0.3, log +smaller steps/);
  const text = readFileSync(join(home, 'sweep/sweep.yaml'), 'utf8');
  expect(readSweep(parse(text))).toMatchObject({ ok: true, sweep: { trials: 70, sampler: 'tpe' } });
});

test('a pipeline file with its programs, written into a directory', async () => {
  const flags = ['--framework', 'sklearn', '--model-type', 'tabular', '--data', '/data/train.csv'];
  const { exitCode, stdout, stderr, home } = await advise(['pipeline', ...flags, '--write', 'p']);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: 'Wrote 9 files into p.\n' });
  expect(stdout).toMatch(/train +preprocess +model +python3 \S+train.py\n/);
  expect(readdirSync(join(home, 'p'))).toEqual(
    expect.arrayContaining(['pipeline.yaml', 'train.py', 'evaluate.py', 'register.py']),
  );
  const text = readFileSync(join(home, 'p/pipeline.yaml'), 'utf8');
  expect(parse(text)).toMatchObject({ name: 'sklearn-tabular', params: { data: '/data/train.csv' } });
});

test('an AutoML run, and its file, from which the command makes the same run', async () => {
  const flags = ['--data', 'train.csv', '--target', 'price', '--time', '30m', '--trials', '12'];
  const { exitCode, stdout, stderr, call } = await advise(['automl', ...flags, '--write', 'a']);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: 'Wrote 1 file into a.\n' });
  expect(stdout).toMatch(/Trials +12, as many at once as there is room for\n/);
  expect(stdout).toMatch(/forest_trees +50 to 400, step 50 +forest, extra_trees\n/);
  const named = async (words: readonly string[]) => {
    const before = call.stdout().length;
    expect(await runCli([...words, '-o', 'json'], call.context)).toBe(exitCodes.ok);
    return (JSON.parse(call.stdout().slice(before)) as { name: string }).name;
  };
  const name = await named(['advise', 'automl', ...flags]);
  expect(await named(['automl', '-f', 'a/automl.yaml', '--dry-run'])).toBe(name);
  const wrong = await advise(['automl', ...flags, '--metric', 'speed']);
  expect(wrong.exitCode).toBe(exitCodes.usage);
  expect(wrong.stderr).toContain('--metric  got "speed"; expected log_loss');
});

test.each(['training'])('%s is no subcommand', async (word) => {
  const { exitCode, stderr } = await advise([word]);
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toContain(`unknown subcommand "${word}"`);
});
