/** Runs the programs of designed pipelines as their steps do, on data of some hundred rows. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonWithSklearn, pythonWithTorch } from '../../../../test/support/services.ts';
import { adviseAs } from '../file/advise.ts';
import { gpuTable } from '../gpus.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-designed-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes the programs into a directory of their own. */
function programsOf(framework: string): string {
  const training_context = { framework, model_type: 'tabular', data: { path: '/data.csv' } };
  const outcome = adviseAs('design_pipeline', { training_context }, gpuTable);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.findings));
  const place = mkdtempSync(join(folder, `${framework}-`));
  for (const { name, text } of outcome.answer.files) writeFileSync(join(place, name), text);
  return place;
}

/** A number that looks random, from 0 up to 1. */
function scattered(index: number): number {
  const value = Math.sin(index * 12.9898) * 43_758.5453;
  return value - Math.floor(value);
}

/** @param isLearnable whether the target follows from the columns */
function table(isLearnable: boolean): string {
  const rows = Array.from({ length: 300 }, (_, index) => {
    const [a, b] = [scattered(index), scattered(index + 1_000)];
    const colour = index % 3 === 0 ? 'red' : 'blue';
    const label = isLearnable ? a + (colour === 'red' ? 0.5 : 0) > 0.7 : scattered(index + 5_000) > 0.5;
    return `${a},${index % 10 === 0 ? '' : b},${colour},${label ? 'yes' : 'no'}`;
  });
  return `a,b,colour,label\n${rows.join('\n')}\n`;
}

function stepsIn(python: string, place: string, csv: string) {
  const data = join(place, 'table.csv');
  writeFileSync(data, csv);
  const at = (name: string) => join(place, name);
  const run = (program: string, ...words: string[]) => {
    const { status, stdout, stderr } = spawnSync(python, [at(program), ...words], {
      encoding: 'utf8',
      env: { ...process.env, OMP_NUM_THREADS: '1' },
    });
    return { status, output: `${stdout}${stderr}` };
  };
  return {
    check: (target: string) =>
      run('check_data.py', '--data', data, '--target', target, '--out', at('report')),
    preprocess: (...words: string[]) =>
      run('preprocess.py', '--data', data, '--target', 'label', '--out', at('split'), ...words),
    train: (...words: string[]) => run('train.py', '--data', at('split'), '--out', at('model'), ...words),
    evaluate: () => run('evaluate.py', '--data', at('split'), '--model', at('model'), '--out', at('metrics')),
    register: () => {
      const read = ['--model', at('model'), '--metrics', at('metrics'), '--data', at('split')];
      return run('register.py', ...read, '--registry', at('registry'));
    },
    at,
  };
}

const done = { status: 0 };

test.each([
  ['sklearn', 'model.joblib', ['--trees', '100']],
  ['pytorch', 'model.pt', ['--epochs', '8', '--lr', '0.01']],
])('%s: from a table to the second version in the registry', async (framework, model, settings) => {
  const python = framework === 'pytorch' ? await pythonWithTorch() : await pythonWithSklearn();
  const steps = stepsIn(python, programsOf(framework), table(true));
  expect(steps.check('label')).toMatchObject(done);
  expect(steps.preprocess()).toMatchObject({
    ...done,
    output: expect.stringContaining('240 rows to train on, 60 to test on') as string,
  });
  expect(steps.train(...settings)).toMatchObject({
    ...done,
    output: expect.stringMatching(/'eval_loss': \d/) as string,
  });
  expect(steps.evaluate()).toMatchObject(done);
  for (const version of ['1', '2']) {
    expect(steps.register()).toMatchObject(done);
    expect(existsSync(join(steps.at('registry'), version, model))).toBe(true);
  }
  const card = JSON.parse(readFileSync(join(steps.at('registry'), '1', 'card.json'), 'utf8')) as {
    metrics: { accuracy: number };
  };
  expect(card.metrics.accuracy).toBeGreaterThan(0.8);
});

test('data that is not there in full, and a model that is no better than a constant, are refused', async () => {
  const python = await pythonWithSklearn();
  const steps = stepsIn(python, programsOf('sklearn'), table(false));
  expect(steps.check('lable')).toMatchObject({
    status: 1,
    output: expect.stringContaining("there is no column 'lable'; there are a, b") as string,
  });
  steps.preprocess();
  // Many trees learn chance by heart.
  steps.train('--trees', '100', '--learning-rate', '1');
  expect(steps.evaluate()).toMatchObject({
    status: 1,
    output: expect.stringContaining('is not registered') as string,
  });
  const few = stepsIn(python, programsOf('sklearn'), 'a,label\n1,x\n2,x\n');
  expect(few.check('label')).toMatchObject({
    status: 1,
    output: expect.stringContaining('label has one value only') as string,
  });
});

test('a class that is first seen among the newest rows stops no training of a series in time', async () => {
  const python = await pythonWithSklearn();
  const lines = table(true).trim().split('\n');
  // In the order of names before the others, and with rows in the validation set and in the test.
  const later = [235, 238, 290].map((row) => row + 1);
  const csv = lines.map((line, row) => (later.includes(row) ? line.replace(/yes$|no$/, 'maybe') : line));
  const steps = stepsIn(python, programsOf('xgboost'), `${csv.join('\n')}\n`);
  expect(steps.preprocess('--ordered')).toMatchObject(done);
  expect(steps.train('--trees', '60')).toMatchObject(done);
  expect(steps.evaluate()).toMatchObject(done);
  const { accuracy } = JSON.parse(readFileSync(steps.at('metrics'), 'utf8')) as { accuracy: number };
  expect(accuracy).toBeGreaterThan(0.8);
});

test('decimals of Parquet are numbers', async () => {
  const code = [
    'import decimal, sys; sys.path.insert(0, sys.argv[1])',
    'import pandas as pd; from pipeline_data import task_of, with_numbers',
    'price = [None, *(decimal.Decimal(index) / 7 for index in range(40))]',
    'table = with_numbers(pd.DataFrame({"name": "x", "price": price}))',
    'print(table.dtypes["price"], task_of(table["price"]))',
  ].join('\n');
  const args = ['-c', code, programsOf('sklearn')];
  const { stdout } = spawnSync(await pythonWithSklearn(), args, { encoding: 'utf8' });
  expect(stdout).toBe('float64 regression\n');
});

test.each(['pytorch', 'tensorflow', 'sklearn', 'xgboost', 'lightgbm'])(
  'the programs for %s are Python',
  async (framework) => {
    const place = programsOf(framework);
    const code =
      'import ast, pathlib, sys\nfor path in pathlib.Path(sys.argv[1]).glob("*.py"): ast.parse(path.read_text(), str(path))';
    const { status, stderr } = spawnSync(await pythonWithTorch(), ['-c', code, place], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  },
);
