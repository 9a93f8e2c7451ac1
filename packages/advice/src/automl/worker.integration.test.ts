/** The Python program that jobs of AutoML run, on small tables that are made here. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pythonWithSklearn } from '../../../../test/support/services.ts';

let python: string;
let dir: string;
beforeAll(async () => {
  python = await pythonWithSklearn();
  dir = mkdtempSync(join(tmpdir(), 'muster-automl-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
}

/** @param onOutput receives everything that was written so far */
function run(args: readonly string[], onOutput?: (output: string, kill: () => void) => void): Promise<Ended> {
  const child = spawn(python, args, {
    cwd: dir,
    env: {
      PATH: process.env.PATH,
      PYTHONPATH: join(import.meta.dirname, '../..'),
      PYTHONDONTWRITEBYTECODE: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const take = (piece: Buffer) => {
    output += piece.toString();
    onOutput?.(output, () => child.kill('SIGTERM'));
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  return new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, output })));
}

const worker = (...args: readonly string[]) => run(['-m', 'muster_automl', ...args]);

const write = (name: string, content: string | Buffer) => writeFileSync(join(dir, name), content);
const read = (path: string) => readFileSync(join(dir, path), 'utf8');
const json = (path: string) => JSON.parse(read(path)) as Readonly<Record<string, unknown>>;

/** The same numbers in every run: a sequence that fills (0, 1) evenly enough for small tables. */
const evenly = (index: number, factor: number) => ((index + 1) * factor) % 1;
const rows = (count: number, row: (index: number) => readonly (string | number)[]) =>
  Array.from({ length: count }, (_, index) => row(index).join(',')).join('\n');

/** Three classes that two columns distinguish, a column that numbers the rows, and one that is the target by other names. */
function flowers(): string {
  const names = ['setosa', 'versicolor', 'virginica'];
  const body = rows(240, (index) => {
    const kind = index % 3;
    const width = kind + evenly(index, 0.618) * 1.2;
    return [
      index,
      width.toFixed(3),
      index % 11 === 0 ? '' : (2 - kind + evenly(index, 0.414)).toFixed(3),
    ].concat(evenly(index, 0.732) < 0.5 ? 'red' : '<b>blue</b>', 'XYZ'[kind] ?? '', names[kind] ?? '');
  });
  return `id,width,length,<i>colour</i>,copy,species\n${body}\n`;
}

const linear = JSON.stringify({ model: 'linear', linear_strength: 0.1 });
const tree = JSON.stringify({ model: 'tree', tree_depth: 3, tree_leaf: 2 });

describe('a classification', () => {
  beforeAll(async () => {
    write('flowers.csv', flowers());
    const { output, code } = await worker(
      'profile',
      '--run',
      'run',
      '--data',
      'flowers.csv',
      '--target',
      'species',
    );
    expect(output).toContain('"task": "classification"');
    expect(output).toContain('\\"id\\" is not used: it numbers the rows');
    expect(output).toContain('\\"copy\\" is not used: it tells the target exactly');
    expect(code).toBe(0);
  });

  test('a trial that is ended by a signal continues after the last fold, with the same result as undisturbed', async () => {
    const args = ['-m', 'muster_automl', 'trial', '--run', 'run', '--params', linear];
    const killed = await run([...args, '--out', 'run/trials/0'], (output, kill) => {
      if (output.includes('"step": 33')) kill();
    });
    const before = statSync(join(dir, 'run/trials/0/fold-33-0.npz')).mtimeMs;
    const resumed = await run([...args, '--out', 'run/trials/0']);
    const undisturbed = await run([...args, '--out', 'other/0']);
    expect(killed.output).toMatch(/^\{"step": 33, "eval_loss": \d\.\d+, "log_loss": \d\.\d+\}$/m);
    expect([resumed.code, undisturbed.code]).toEqual([0, 0]);
    expect(resumed.output).toBe(undisturbed.output);
    expect(statSync(join(dir, 'run/trials/0/fold-33-0.npz')).mtimeMs).toBe(before);
    const { seconds: _, ...result } = json('run/trials/0/result.json');
    expect(json('other/0/result.json')).toMatchObject(result);
  });

  test('models of xgboost are tried where that Python has it', async () => {
    const boosted = { model: 'xgboost', boost_rate: 0.3, boost_rounds: 20, boost_leaves: 7, boost_l2: 1 };
    expect(json('run/run.json')['libraries']).toContain('xgboost');
    const args = ['trial', '--run', 'run', '--params', JSON.stringify(boosted), '--out', 'boosted/0'];
    expect((await worker(...args)).code).toBe(0);
    const { scores } = json('boosted/0/result.json') as { readonly scores: { readonly accuracy: number } };
    expect(scores.accuracy).toBeGreaterThan(0.8);
  });

  test('finish ranks the trials and reports on rows that no trial has seen; predict uses what it chose', async () => {
    await worker('trial', '--run', 'run', '--params', linear, '--out', 'run/trials/0');
    await worker('trial', '--run', 'run', '--params', tree, '--out', 'run/trials/1');
    const { output, code } = await worker('finish', '--run', 'run');
    expect(output).toContain('automl result: {"trials": 2,');
    expect(code).toBe(0);
    const [header, first, second] = read('run/leaderboard.csv').split('\r\n');
    const loss = (line = '') => Number(line.split(',')[1]);
    expect(header).toMatch(/^trial,log_loss,accuracy,/);
    expect(loss(first)).toBeLessThanOrEqual(loss(second));
    const markdown = read('run/report.md');
    for (const section of [
      'Result',
      'Leaderboard',
      'Ensemble',
      'Confusion',
      'Importance',
      'Learning curves',
      'How to reproduce',
    ])
      expect(markdown).toContain(`## ${section}\n`);
    expect(markdown).toContain('--target species --task classification --metric log_loss --seed 0');
    expect(markdown).toMatch(/^With pandas .*, sklearn .*, xgboost \d/m);
    expect(markdown).toMatch(/^PYTHONPATH=\S+ \/\S+python[\d.]* -m muster_automl profile/m);
    const html = read('run/report.html');
    expect(html).toContain('<svg ');
    expect(html).toContain('&lt;i&gt;colour&lt;/i&gt;');
    expect(html).not.toMatch(/<i>|<script|https?:(?!\/\/www\.w3\.org)/);

    write('new.csv', 'width,length,<i>colour</i>\n0.2,2.1,red\n2.9,,green\n');
    const predicted = await worker(
      'predict',
      '--run',
      'run',
      '--data',
      'new.csv',
      '--out',
      'predictions.csv',
    );
    expect(predicted).toMatchObject({ code: 0, output: '' });
    const [, ...lines] = read('predictions.csv').trim().split('\r\n');
    expect(lines.map((line) => line.split(',')[0])).toEqual(['setosa', 'virginica']);
  });
});

test('a regression in the order of time is tested on the newest rows', async () => {
  const body = rows(120, (index) => {
    const heat = evenly(index, 0.618);
    return [
      `2024-${String(1 + (index % 12)).padStart(2, '0')}-11`,
      heat.toFixed(4),
      (3 * heat + index / 1e3).toFixed(4),
    ];
  });
  write('sales.csv', `day;heat;sold\n${body.replaceAll(',', ';')}\n`);
  const args = [
    '--run',
    'sales',
    '--data',
    'sales.csv',
    '--target',
    'sold',
    '--time-column',
    'day',
    '--seed',
    '7',
  ];
  expect(await worker('profile', ...args)).toMatchObject({ code: 0 });
  expect(json('sales/run.json')).toMatchObject({
    task: 'regression',
    metric: 'rmse',
    split: { kind: 'time', folds: 5 },
  });
  const params = JSON.stringify({ model: 'linear', linear_strength: 0.01 });
  await worker('trial', '--run', 'sales', '--params', params, '--out', 'sales/trials/0');
  const { output } = await worker('finish', '--run', 'sales');
  const { test: scores } = JSON.parse(output.replace('automl result: ', '')) as {
    test: Record<string, number>;
  };
  expect(scores['best']).toBeLessThan(0.1);
  expect(scores['baseline']).toBeGreaterThan(0.5);
  expect(read('sales/report.md')).toContain('## Residuals\n');
});

const good = `a,b,y\n${rows(30, (index) => [evenly(index, 0.618), evenly(index, 0.414), index % 2])}\n`;
const withY = (y: (index: number) => string | number) =>
  `a,y\n${rows(30, (index) => [evenly(index, 0.618), y(index)])}\n`;

/** Of each table: what its profile reports. */
const tables: Readonly<Record<string, readonly [content: string | Buffer | null, message: string]>> = {
  'absent.csv': [null, 'absent.csv: not a file on this node'],
  'empty.csv': ['', 'empty.csv: the file is empty'],
  'header.csv': ['a,y\n', 'header.csv: the table has columns and no rows'],
  'other.csv': [good.replace('y', 'z'), 'no column "y" (--target); columns: "a", "b", "z"'],
  'twice.csv': [good.replace('b', 'a'), 'the column "a" is there more than once; rename one of them'],
  'latin.csv': [
    Buffer.from(`a,y\n1,b\n2,caf\xe9\n`, 'latin1'),
    'latin.csv, line 3: byte 0xe9 is not utf-8; save the file as UTF-8',
  ],
  'nowhere.csv': [withY(() => ''), 'the target "y" has no value in any row'],
  'one.csv': [withY(() => 'yes'), 'the target "y" has one class, "yes"; two are needed'],
  'rare.csv': [
    withY((index) => (index === 0 ? 'odd' : 'even')),
    'the class "odd" of "y" has fewer than 3 rows',
  ],
  'few.csv': ['a,y\n1,2\n3,4\n', 'few.csv: 2 rows with a target; at least 20 are needed'],
  'nothing.csv': [
    `y\n${rows(30, (index) => [index % 2])}\n`,
    'no column is left to learn from: there is only the target',
  ],
  'missing.csv': [
    withY((index) => index % 2).replace(/^0.*?,/gm, ','),
    'no column is left to learn from: "a" is not used: it has no value in any row',
  ],
  'ragged.csv': [
    'a,y\n1,2\n1,2,3\n',
    'ragged.csv: not a readable CSV file: Error tokenizing data. C error: Expected 2 fields in line 3, saw 3',
  ],
  'table.parquet': ['PAR1', 'table.parquet: '],
};

test('a table that cannot be used is refused with its place and the remedy', async () => {
  for (const [name, [content]] of Object.entries(tables)) if (content !== null) write(name, content);
  // One process for all of them: the libraries take a second to load.
  const code = [
    'import sys; from muster_automl.__main__ import main',
    'def check(name): return main(["profile", "--run", f"bad/{name}", "--data", name, "--target", "y"])',
    'for name in sys.argv[1:]: print("exit", check(name))',
  ].join('\n');
  const { output } = await run(['-c', code, ...Object.keys(tables)]);
  const outputs = output.trim().split(/\nexit 2(?:\n|$)/);
  expect(
    Object.values(tables).map(([, message], index) =>
      outputs[index]?.includes(message) === true ? message : outputs[index],
    ),
  ).toEqual(Object.values(tables).map(([, message]) => message));
});

test('rows without a target are not used, and a key and an empty column are left out with a note', async () => {
  const body = rows(60, (index) => [
    `k${index}x`,
    '',
    evenly(index, 0.618),
    index % 10 === 0 ? '' : `${index % 2}`,
  ]);
  write('notes.csv', `key,void,a,y\n${body}\n`);
  await worker('profile', '--run', 'notes', '--data', 'notes.csv', '--target', 'y');
  expect(json('notes/run.json')).toMatchObject({
    rows: 54,
    classes: ['0', '1'],
    notes: [
      '6 of 60 rows have no "y" and are not used',
      '"key" is not used: 54 different texts in 54 rows are a key or free text (--keep uses it)',
      '"void" is not used: it has no value in any row',
    ],
  });
  const other = await worker(
    'profile',
    '--run',
    'notes',
    '--data',
    'notes.csv',
    '--target',
    'y',
    '--seed',
    '1',
  );
  expect(other).toMatchObject({
    code: 2,
    output: expect.stringContaining('notes: the directory has another run'),
  });
});

/** What Parquet has and CSV has not, as pyarrow would return it: Debian has no pyarrow, and tests install nothing. */
const pyarrow = `
class ArrowInvalid(Exception): pass
`;
const parquet = `
import datetime, decimal
import pandas as pd
from . import ArrowInvalid

class Table:
    def to_pandas(self, timestamp_as_object=False):
        if not timestamp_as_object: raise ArrowInvalid("would result in out of bounds timestamp")
        count = range(40)
        start = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
        return pd.DataFrame({
            "price": [decimal.Decimal(index) / 7 if index else None for index in count],
            "took": [datetime.timedelta(seconds=index * index) for index in count],
            "place": [b"Ulm" if index % 3 else b"Bonn" for index in count],
            "until": [datetime.datetime(9999, 12, 31) if index % 2 else start + datetime.timedelta(hours=index) for index in count],
            "tags": [[index % 2] for index in count],
            "y": [index % 2 for index in count],
        }, index=pd.Index([start + datetime.timedelta(days=index * 7 % 40) for index in count], name="sold"))

def read_table(path, partitioning): return Table()
`;

test('values of Parquet that CSV does not have are used as those that it has', async () => {
  mkdirSync(join(dir, 'arrow/pyarrow'), { recursive: true });
  write('arrow/pyarrow/__init__.py', pyarrow);
  write('arrow/pyarrow/parquet.py', parquet);
  write('sold.parquet', 'PAR1');
  const code = [
    // pandas comes first, because it looks at the version of pyarrow.
    'import pandas, pathlib, sys; sys.path.insert(0, "arrow")',
    'from muster_automl import dataset, errors; from muster_automl.__main__ import main',
    'table = ["--data", "sold.parquet", "--target", "y", "--time-column", "sold", "--keep", "tags"]',
    'assert main(["profile", "--run", "arrow", *table]) == 0',
    'features = dataset.load(errors.read_json(pathlib.Path("arrow/run.json"))).features',
    'names = ["price", "took", "place", "until (hour)"]',
    'print(features[names].head(3).round(3).to_json(orient="values"))',
  ].join('\n');
  const { output } = await run(['-c', code]);
  expect(json('arrow/run.json')['columns']).toMatchObject({
    sold: { kind: 'date' },
    price: { kind: 'number', missing: 1 },
    took: { kind: 'number' },
    place: { kind: 'category' },
    until: { kind: 'date' },
    tags: { kind: 'dropped', why: 'it has lists or records; give each of their values a column' },
  });
  const inOrder = [
    [null, 0, 'Bonn', 0],
    [3.286, 529, 'Ulm', null],
    [0.857, 36, 'Bonn', 6],
  ];
  expect(JSON.parse(output.trim().split('\n').at(-1) ?? '')).toEqual(inOrder);
});

test('a library that cannot be loaded is not tried, and the profile says why', async () => {
  mkdirSync(join(dir, 'broken'));
  write('broken/lightgbm.py', 'raise OSError("libgomp.so.1: cannot open shared object file")');
  const code = [
    'import sys; sys.path.insert(0, "broken"); from muster_automl.profile import libraries',
    'found, notes = libraries(); print(list(found), *notes)',
  ].join('\n');
  const { output } = await run(['-c', code]);
  expect(output).toBe(
    "['xgboost'] lightgbm is not tried: it cannot be loaded: libgomp.so.1: cannot open shared object file\n",
  );
});
