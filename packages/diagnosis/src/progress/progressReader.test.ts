import type { TrainingProgress } from '@muster/common/training';
import { expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { LineReader, linesOf } from '../lines/lineReader.ts';
import { chunksOf } from '../lines/testing/chunks.ts';
import { TrendWatch } from '../signs/trend.ts';
import { ProgressReader, type ProgressRow } from './progressReader.ts';
import type { SaveMention } from './saves.ts';

function readAll(output: string | Uint8Array): ProgressReader {
  const reader = new ProgressReader();
  for (const line of linesOf(output)) reader.line(line);
  return reader;
}

/** One line each second, as a program prints them. */
function progressOf(...lines: readonly string[]): TrainingProgress | null {
  const reader = new ProgressReader();
  let atMs = 1_000_000;
  for (const line of linesOf(lines.join('\n'))) reader.line(line, (atMs += 1_000));
  return reader.progress;
}

const hf = (epoch: number) => `{'loss': 2.5, 'learning_rate': 0.001, 'epoch': ${epoch}}`;
const bar = (done: number, total: number, rate = '2.00s/it', label = '') =>
  `\r${label} ${Math.round((100 * done) / total)}%|██  | ${done}/${total} [00:10<01:00, ${rate}]`;
const nanogpt = (step: number, loss = '2.5000') => `iter ${step}: loss ${loss}, time 2000.00ms, mfu 1.00%`;
const titan = (step: number) => `step: ${step}  loss:  2.50000  grad_norm:  0.5000`;

test('nothing that is known: no progress', () => {
  expect(progressOf('hello', 'loss of sight', '100% done')).toBeNull();
});

test('the first and the last row and how many there are', () => {
  const reader = readAll(`starting\n${nanogpt(0)}\n${nanogpt(10)}\nworking\n${nanogpt(20)}\n`);
  expect(reader.rows).toBe(3);
  expect(reader.framework).toBe('nanogpt');
  expect(reader.first).toMatchObject({ line: 2, rank: null, values: { step: 0 } });
  expect(reader.last).toMatchObject({ line: 5, canonical: { step: 20, train_loss: 2.5 }, text: nanogpt(20) });
});

test('latest holds the newest value of each metric', () => {
  const { latest } = progressOf(nanogpt(10), 'step 10: train loss 2.4, val loss 2.6', nanogpt(20)) ?? {};
  expect(latest).toEqual({ step: 20, train_loss: 2.5, eval_loss: 2.6, step_seconds: 2 });
});

test('a loss that is no number leaves no old loss behind', () => {
  expect(progressOf(nanogpt(10), nanogpt(20, 'nan'))?.latest).toEqual({ step: 20, step_seconds: 2 });
});

test('a metric whose newest value is not a finite number is named, until it has a value again', () => {
  const row = (step: number, evalLoss: string) => `{"step": ${step}, "loss": 2, "eval_loss": ${evalLoss}}`;
  const bad = progressOf(row(1, '2.5'), row(2, 'NaN'));
  expect(bad).toMatchObject({ latest: { step: 2, train_loss: 2 }, notFinite: ['eval_loss'] });
  expect(bad?.latest).not.toHaveProperty('eval_loss');
  expect(progressOf(row(1, '2.5'), row(2, 'NaN'), row(3, '2.4'))).not.toHaveProperty('notFinite');
});

test.each([
  ['deepspeed first', '[Rank 0] step=1, skipped=0, lr=[0.1], mom=[0]', hf(0.1), 'hf_trainer'],
  ['deepspeed later', hf(0.1), '[Rank 0] step=1, skipped=0, lr=[0.1], mom=[0]', 'hf_trainer'],
  ['a logger of its own first', '{"step": 1, "loss": 2}', nanogpt(1), 'nanogpt'],
])('the job is called by what prints its losses: %s', (_name, first, second, framework) => {
  expect(readAll(`${first}\n${second}\n`).framework).toBe(framework);
});

const iteration = (step: number, loss: string) =>
  `[default7]: iteration ${String(step).padStart(8)}/    1000 | consumed samples: ${step * 256} | elapsed time per iteration (s): ` +
  `10.50 | learning rate: 6.000E-07 | lm loss: ${loss} | grad norm: 3.250 | number of skipped iterations:   0 |`;
const validation = (step: number, loss: string) =>
  `[default7]: validation loss at iteration ${step} | lm loss value: ${loss} | lm loss PPL: 5.928810E+04 | `;
const megatronOnDeepspeed = [
  '[2023-04-04 10:00:00,000] [INFO] [logging.py:69:log_dist] [Rank 0] step=0, skipped=0, lr=[0.0, 0.0], mom=[(0.9, 0.95)]',
  '[default7]:steps: 0 loss: 11.0312 iter time (s): 10.500 samples/sec: 24.381',
  iteration(1, '1.103125E+01'),
  validation(1, '1.099010E+01'),
  '[default0]:[2023-04-04 10:00:20,000] [INFO] [logging.py:69:log_dist] [Rank 0] step=2, skipped=0, lr=[1e-06, 1e-06]',
  '[default7]:steps: 1 loss: 10.8750 iter time (s): 9.500 samples/sec: 26.947',
  '[default0]:[2023-04-04 10:00:20,000] [INFO] [timer.py:193:stop] 0/2, SamplesPerSec=26.9, MemAllocated=9.1GB, MaxMemAllocated=19.4GB',
  iteration(2, '1.087500E+01'),
  validation(2, '1.080000E+01'),
];

test.each([
  ['from the beginning', megatronOnDeepspeed],
  ['an engine that prints a step first', megatronOnDeepspeed.with(0, '[Rank 0] step=1, skipped=0, lr=[0.1]')],
  ['a log that begins with a validation', [validation(0, '1.2E+01'), ...megatronOnDeepspeed]],
])(
  'rows of Megatron are its iterations, not validations and what DeepSpeed says of them: %s',
  (_what, lines) => {
    const reader = readAll(`${lines.join('\n')}\n`);
    expect(reader.rows).toBe(2);
    expect(reader.framework).toBe('megatron');
    expect(reader.first?.values).toMatchObject({ step: 1, loss: 11.03125 });
    expect(reader.last?.values).toMatchObject({ step: 2, loss: 10.875 });
    expect(reader.progress?.latest).toMatchObject({ step: 2, train_loss: 10.875, eval_loss: 10.8 });
  },
);

test('a validation of Megatron is reported with its step all the same', () => {
  const found: ProgressRow[] = [];
  const reader = new ProgressReader({ onRow: (row) => found.push(row) });
  for (const line of linesOf(megatronOnDeepspeed.join('\n'))) reader.line(line);
  expect(
    found.map(({ canonical: { step, train_loss, eval_loss } }) => [step, train_loss ?? eval_loss]),
  ).toEqual([
    [1, 11.03125],
    [1, 10.9901],
    [2, 10.875],
    [2, 10.8],
  ]);
});

test('lines that two formats could read are read alike, whatever was read before', () => {
  const fairseq =
    '2022-02-03 04:05:06 | INFO | train_inner | {"epoch": 1, "loss": "2.5", "num_updates": "7", "lr": "0.1"}';
  const frameworks: string[] = [];
  const reader = new ProgressReader({ onRow: ({ framework }) => frameworks.push(framework) });
  for (const line of linesOf(`${fairseq}\n{"step": 1, "loss": 2}\n${fairseq}\n`)) reader.line(line);
  expect(frameworks).toEqual(['fairseq', 'json_lines', 'fairseq']);
});

test('the step of a Trainer comes from its bar, not from that of an evaluation', () => {
  const steps: (number | undefined)[] = [];
  const reader = new ProgressReader({ onRow: ({ canonical }) => steps.push(canonical.step) });
  const output = [
    bar(0, 100),
    bar(5, 100),
    hf(0.1),
    bar(1, 8),
    bar(8, 8),
    "{'eval_loss': 2.1, 'epoch': 0.1}",
  ];
  output.push(bar(9, 100), bar(10, 100), hf(0.2));
  for (const line of linesOf(output.join('\n'))) reader.line(line);
  expect(steps).toEqual([5, 5, 10]);
  expect(reader.progress).toMatchObject({ totalSteps: 100, etaMs: 90 * 2_000, latest: { step: 10 } });
});

test('a second training in the same output has a bar of its own', () => {
  expect(progressOf(bar(100, 100), hf(1), bar(3, 60), hf(0.1))).toMatchObject({
    totalSteps: 60,
    latest: { step: 3 },
  });
});

test('reported totals count more than bars, and bars of data sets do not count', () => {
  expect(
    progressOf(
      '  Total optimization steps = 1,200',
      bar(7, 50),
      bar(3, 1200),
      bar(9, 1200, '9.00it/s', 'Map:'),
      hf(0.1),
    ),
  ).toMatchObject({ totalSteps: 1200, latest: { step: 3 } });
});

test('without bars a Trainer is as far as its epochs are', () => {
  expect(progressOf('  Num Epochs = 4', '  Total optimization steps = 200', hf(1.5))).toMatchObject({
    totalSteps: 200,
    latest: { step: 75 },
  });
});

test('a bar alone is progress', () => {
  expect(progressOf(bar(5, 20, '2.00it/s', 'Training:'))).toEqual({
    framework: null,
    latest: { step: 5 },
    totalSteps: 20,
    etaMs: 15 * 500,
    rows: 0,
    atMs: 1_001_000,
  });
});

test('the last of several bars on one line counts, whatever follows it', () => {
  const line = '  5%|# | 5/50 [00:10<01:30, 2.00s/it]  8%|# | 4/50 [00:08<01:32, 2.00s/it[rank1]:[E late';
  expect(progressOf(line)?.latest).toEqual({ step: 4 });
});

test("a Trainer's bar counts beside DeepSpeed's own lines, which tell a step and no loss", () => {
  expect(
    progressOf(bar(9, 50), '[Rank 0] step=10, skipped=0, lr=[0.1], mom=[0]', bar(10, 50), hf(0.2)),
  ).toMatchObject({ totalSteps: 50, etaMs: 40 * 2_000, latest: { step: 10, train_loss: 2.5 } });
});

test('bars do not count once lines tell the step themselves', () => {
  expect(progressOf(bar(3, 10), nanogpt(700), bar(4, 10))).toMatchObject({
    totalSteps: null,
    latest: { step: 700 },
  });
});

test.each([
  ['Overriding: max_iters = 5000', nanogpt(1000), 5000],
  ['max_iters = 600 # keep it short', nanogpt(10), 600],
  [
    'Training starts at step 1, with local batch size 8, global batch size 64, total steps 900 (warmup 20)',
    titan(5),
    900,
  ],
  ['', '{"step": 5, "loss": 1.5, "total_steps": 50}', 50],
  ['', 'iteration        5/      70 | lm loss: 2.0E+00 |', 70],
])('the total of steps: %s %s', (first, row, totalSteps) => {
  expect(progressOf(first, row)?.totalSteps).toBe(totalSteps);
});

test("an ETA by the program's own step time, whatever its slowest step took", () => {
  const rows = [10, 20, 30, 40].map((step) => nanogpt(step));
  rows.push('iter 50: loss 2.5000, time 90000.00ms, mfu 1.00%');
  expect(progressOf('max_iters = 150', ...rows)?.etaMs).toBe(100 * 2_000);
});

test('an ETA by the times at which lines came', () => {
  const start = 'Training starts at step 1, total steps 100';
  expect(progressOf(start, titan(10), titan(12), titan(14))?.etaMs).toBe(86 * 500);
});

test('lines that were written before they are read tell nothing of the speed', () => {
  const reader = new ProgressReader();
  const [start, ...rows] = linesOf(
    ['Training starts at step 1, total steps 1000', ...[10, 20, 30, 40].map(titan)].join('\n'),
  );
  if (start === undefined) throw new Error('no lines');
  reader.line(start, null);
  for (const row of rows) reader.line(row, 5_000);
  expect(reader.progress).toMatchObject({ etaMs: null, latest: { step: 40 } });
  for (const line of linesOf(titan(45))) reader.line(line, 15_000);
  expect(reader.progress?.etaMs).toBe(955 * 2_000);
});

test.each<[string, Pick<SaveMention, 'path' | 'isDone'>]>([
  ['saving checkpoint to out-small', { path: 'out-small', isDone: false }],
  [
    "Saving checkpoint to 'out/step-000100/lit_model.pth'",
    { path: 'out/step-000100/lit_model.pth', isDone: false },
  ],
  ['INFO >> Saving model checkpoint to runs/checkpoint-40', { path: 'runs/checkpoint-40', isDone: false }],
  [
    'Model checkpoint of size 1.50 GiB saved to runs/epoch_1/model.safetensors',
    { path: 'runs/epoch_1/model.safetensors', isDone: true },
  ],
  [
    'saving checkpoint at iteration      40 to /runs/a in torch_dist format',
    { path: '/runs/a', isDone: false },
  ],
  ['  successfully saved checkpoint at iteration      40 to /runs/a', { path: '/runs/a', isDone: true }],
  [
    '  successfully saved checkpoint from iteration      40 to /runs/a [ t 1/2, p 1/1 ]',
    { path: '/runs/a', isDone: true },
  ],
  [
    '[INFO] [engine.py:3000:_save_checkpoint] Saving model checkpoint: runs/global_step40/mp_rank_00_model_states.pt',
    { path: 'runs/global_step40/mp_rank_00_model_states.pt', isDone: false },
  ],
  ['[INFO] [Torch] Saved runs/global_step40/a.pt.', { path: 'runs/global_step40/a.pt', isDone: true }],
  [
    'Saved checkpoint runs/checkpoint_2_40.pt (epoch 2 @ 40 updates, score 3.5) (writing took 1.5 seconds)',
    { path: 'runs/checkpoint_2_40.pt', isDone: true },
  ],
  [
    "Epoch 0, global step 40: saving model to '/runs/a/epoch=0.ckpt' as top 1",
    { path: '/runs/a/epoch=0.ckpt', isDone: false },
  ],
  ['Saving the checkpoint (or staging if async is enabled).', { path: null, isDone: false }],
  ['Finished saving the checkpoint in 1.50 seconds.', { path: null, isDone: true }],
])('a save is mentioned: %s', (text, save) => {
  const saves: SaveMention[] = [];
  const reader = new ProgressReader({ onSave: (each) => saves.push(each) });
  for (const line of linesOf(`\n[rank3]: ${text}`)) reader.line(line);
  expect(saves).toEqual([{ ...save, line: 2, rank: 3 }]);
});

test.each([
  'saving energy',
  'this saved us an hour',
  'Saving the results to out.csv',
  'not saving checkpoints',
])('no save: %s', (text) => {
  const saves: SaveMention[] = [];
  const reader = new ProgressReader({ onSave: (each) => saves.push(each) });
  for (const line of linesOf(text)) reader.line(line);
  expect(saves).toEqual([]);
});

test('however bytes are cut, the rows are the same', () => {
  const output = Buffer.from(
    [
      'max_iters = 150\r',
      `${nanogpt(1)}\n`,
      `${bar(1, 9)}${hf(0.25)}\n`,
      '[rank1]:\x1b[31mstep: 30  \x1b[32mloss:  6.12345\x1b[0m\n',
      'Epoch 0:  50%|█████     | 1/2 [00:01<00:01, 1.00it/s, loss=2]\r',
      "{'loss': 'nan', 'epoch': '0.5'}\r\n",
      '{"step": 3, "loss": NaN, "who": "é日"}\n',
      `${'x'.repeat(70_000)}\n`,
      nanogpt(2),
    ].join(''),
  );
  const whole: ProgressRow[] = [];
  const reader = new ProgressReader({ onRow: (row) => whole.push(row) });
  for (const line of linesOf(output)) reader.line(line);
  expect(whole).toHaveLength(7);
  for (let seed = 1; seed <= 30; seed += 1) {
    const rows: ProgressRow[] = [];
    const progress = new ProgressReader({ onRow: (row) => rows.push(row) });
    const lines = new LineReader((line) => progress.line(line));
    for (const chunk of chunksOf(output, seededChance(seed), 2_000)) lines.feed(chunk);
    lines.end();
    expect(rows, `seed ${seed}`).toEqual(whole);
    expect(progress.progress, `seed ${seed}`).toEqual(reader.progress);
  }
});

test('whatever is fed, nothing is thrown and no value is invented', () => {
  // Words of every format in any order, with bytes of any kind between them.
  const pieces = [
    'iter 1: loss ',
    'step: 5  loss: ',
    "{'loss': ",
    '{"step": 1, "loss": ',
    '| iteration 5/ 9 |',
    ' lm loss: ',
    '}',
    '|',

    'Epoch 1: 5%|',
    '| 3/9 [00:01<00:02, 2.0it/s, loss=',
    ']',
    ', time ',
    'ms',
    'nan',
    '1e999',
    '-',
    '9'.repeat(400),

    ' | INFO | train | ',
    'Overflow detected. Attempted loss scale: ',
    ', reducing to ',
    '\n',
    '\r',
    '\x1b[',
    '\xff',

    'saving checkpoint to ',
    '[rank',
    ']:',
    '0:',
    ' ',
    '\0',
    '1|2|Loss: ',
    '__proto__',
    "': ",
    '=[',
    'Step 1 | ',
  ] as const;
  for (let seed = 1; seed <= 300; seed += 1) {
    const chance = seededChance(seed);
    const parts = Array.from({ length: 200 }, () => chance.pick(pieces));
    const noise = Uint8Array.from({ length: 200 }, () => chance.integer(0, 255));
    const progress = new ProgressReader({ onSave: () => {} });
    const trend = new TrendWatch();
    const lines = new LineReader((line) => {
      const row = progress.line(line, line.number);
      if (row === null) trend.line(line);
      else trend.row(row);
    });
    for (const bytes of [Buffer.from(parts.join(''), 'latin1'), noise]) lines.feed(bytes);
    lines.end();
    const values = [
      ...Object.values(progress.last?.values ?? {}),
      ...Object.values(progress.progress?.latest ?? {}),
    ];
    for (const value of values) {
      if (typeof value === 'number') expect(value, `seed ${seed}`).toSatisfy(Number.isFinite);
    }
  }
});
