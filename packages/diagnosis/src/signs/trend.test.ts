import type { TrainingSign } from '@muster/common/training';
import { expect, test } from 'vitest';
import { type Chance, seededChance } from '../../../../test/support/chance.ts';
import { linesOf } from '../lines/lineReader.ts';
import { ProgressReader } from '../progress/progressReader.ts';
import { TrendWatch } from './trend.ts';

function signsOf(lines: readonly string[]): readonly TrainingSign[] {
  const progress = new ProgressReader();
  const trend = new TrendWatch();
  return linesOf(lines.join('\n')).flatMap((line) => {
    const row = progress.line(line);
    return row === null ? trend.line(line) : trend.row(row);
  });
}

const foundIn = (lines: readonly string[]) =>
  signsOf(lines).map(({ kind, step, lastGoodStep }) => [kind, step, lastGoodStep]);

const row = (step: number, loss: number | string) =>
  `iter ${step}: loss ${typeof loss === 'number' ? loss.toFixed(4) : loss}, time 100.00ms, mfu 1.00%`;
/** One row per loss, `every` steps apart. */
const rows = (losses: readonly (number | string)[], every = 1, from = 0) =>
  losses.map((loss, index) => row(from + index * every, loss));
const repeated = (count: number, ...losses: readonly number[]) =>
  Array.from({ length: count }, (_, index) => losses[index % losses.length] ?? 0);
const calm = repeated(100, 2.2, 2.25, 2.3, 2.21);

test('a loss that is no number is reported at once, and once', () => {
  const lines = rows([...repeated(10, 3), 'nan', 'nan', 'nan'], 10);
  expect(signsOf(lines)).toEqual([
    { kind: 'nan_loss', step: 100, lastGoodStep: 90, rank: null, line: 11, text: row(100, 'nan') },
  ]);
});

test.each([
  ['infinite', row(1, 'inf')],
  ['in an evaluation', 'step 1: train loss nan, val loss nan'],
  ['as a string', "{'loss': 'nan', 'grad_norm': 'nan', 'epoch': '0.1'}"],
  ['as what a Trainer prints in half precision', "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.1}"],
  [
    'counted',
    'iteration 1/ 9 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   2 |',
  ],
  ['as an error', 'AssertionError: Rank 3: found NaN in local grad norm in backward pass'],
  ['in JSON', '{"step": 1, "loss": NaN}'],
])('not a number: %s', (_name, line) => {
  expect(signsOf([row(0, 3), line])).toMatchObject([{ kind: 'nan_loss', lastGoodStep: 0, line: 2 }]);
});

test.each([
  ['an evaluation without a result', 'step 1: train loss 3.0, val loss nan'],
  [
    'a validation that has not been',
    'Epoch 1 | iter 1 step 1 | loss train: 3.0, val: n/a | iter time: 1.00 ms',
  ],
  ['a norm, once', "{'loss': 3.0, 'grad_norm': nan, 'epoch': 0.1}"],
  ['steps that were skipped', 'iteration 1/ 9 | loss scale: 65536.0 | number of skipped iterations:   1 |'],
  ['a value that was not measured', '{"step": 1, "loss": null, "lr": 0.1}'],
])('no sign: %s', (_name, line) => {
  expect(signsOf([row(0, 3), line, row(2, 3)])).toEqual([]);
});

test('gradients that stay no numbers are a sign', () => {
  const bad = (epoch: number) => `{'loss': 3.0, 'grad_norm': nan, 'epoch': ${epoch}}`;
  expect(foundIn([bad(0.1), bad(0.2)])).toEqual([]);
  expect(signsOf([bad(0.1), bad(0.2), bad(0.3)])).toMatchObject([{ kind: 'nan_loss', line: 1 }]);
});

test('trouble that comes and goes is one; after ten good lines it is another', () => {
  expect(foundIn(rows([3, 'nan', 3, 3, 'nan', 3, 'nan']))).toEqual([['nan_loss', 1, 0]]);
  expect(foundIn(rows([3, 'nan', ...repeated(10, 3), 'nan']))).toEqual([
    ['nan_loss', 1, 0],
    ['nan_loss', 12, 11],
  ]);
});

test('a spike that returns is a spike and no more', () => {
  const losses = [...calm, 5.1, 3.5, 3.3, 3.1, 2.8, 2.4, 2.3, ...calm];
  expect(foundIn(rows(losses))).toEqual([['loss_spike', 100, 99]]);
});

test('a loss that has jumped and stays is a divergence from before the jump', () => {
  expect(foundIn(rows([...calm, ...repeated(60, 7, 6.8, 7.1)]))).toEqual([
    ['loss_spike', 100, 99],
    ['loss_divergence', 150, 99],
  ]);
});

test('a loss that stays high for fewer than 50 steps is no divergence', () => {
  expect(foundIn(rows([...calm, ...repeated(50, 7), ...calm]))).toEqual([['loss_spike', 100, 99]]);
});

test('where a line stands for many steps, three of them make a divergence', () => {
  expect(foundIn(rows([...calm, 7, 7], 500))).toEqual([['loss_spike', 50_000, 49_500]]);
  expect(foundIn(rows([...calm, 7, 7, 7], 500))).toEqual([
    ['loss_spike', 50_000, 49_500],
    ['loss_divergence', 51_000, 49_500],
  ]);
});

test('where lines tell no steps, twenty of them do', () => {
  const lines = [...calm, ...repeated(30, 7)].map((loss) => `{'loss': ${loss}, 'epoch': 1.0}`);
  expect(signsOf(lines)).toMatchObject([
    { kind: 'loss_spike', line: 101 },
    { kind: 'loss_divergence', line: 120, step: null, lastGoodStep: null },
  ]);
});

test('a loss that creeps up until it is far above its best is a divergence', () => {
  const creeping = Array.from({ length: 400 }, (_, index) => 2.25 + index * 0.01);
  const kinds = signsOf(rows([...calm, ...creeping], 10)).map(({ kind }) => kind);
  expect(kinds).toEqual(['loss_spike', 'loss_divergence']);
});

test('a spike on its way back is not called a divergence, however long it takes', () => {
  const returning = Array.from({ length: 100 }, (_, index) => 3 + 4 * Math.exp(-index / 10));
  expect(foundIn(rows([...calm, ...returning, ...calm]))).toEqual([['loss_spike', 100, 99]]);
});

test('a loss that is high but seldom far above the usual is no divergence', () => {
  expect(foundIn(rows([...calm, 7, ...repeated(60, 3), 7, ...calm]))).toEqual([['loss_spike', 100, 99]]);
});

test('a single good line within a divergence does not end it', () => {
  expect(foundIn(rows([...calm, 7, 2.2, ...repeated(60, 7)]))).toEqual([
    ['loss_spike', 100, 99],
    ['loss_divergence', 150, 99],
  ]);
});

test('what is no number after a jump was well before the jump', () => {
  expect(foundIn(rows([...calm, 7, 70, 700, 'nan']))).toEqual([
    ['loss_spike', 100, 99],
    ['nan_loss', 103, 99],
  ]);
});

test('a run that begins anew is measured by its own past', () => {
  const lines = [...rows(calm, 1, 1_000), ...rows([11, 10, 9, 8, 7, 6, 5, 'nan'])];
  expect(foundIn(lines)).toEqual([['nan_loss', 7, 6]]);
});

/** Normal noise, from uniform chance. */
function noise(chance: Chance, deviation: number): number {
  const uniform = () => chance.integer(1, 1_000_000) / 1_000_001;
  return deviation * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

test.each<[string, (step: number, chance: Chance) => number]>([
  ['a pretraining', (step, chance) => 2 + 9 * Math.exp(-step / 60) + noise(chance, 0.05)],
  [
    'small batches',
    (step, chance) => Math.max(0.05, 1.2 + 0.5 * Math.exp(-step / 200) + noise(chance, 0.35)),
  ],
  ['heavy tails', (_step, chance) => 0.8 * Math.exp(noise(chance, 0.3))],
  ['losses around zero', (_step, chance) => noise(chance, 0.02)],
  ['a warm-up again', (step, chance) => 2 + 0.3 * Math.abs(Math.sin(step / 300)) + noise(chance, 0.05)],
  ['epochs that repeat', (step, chance) => 3 / (1 + Math.floor(step / 250)) + noise(chance, 0.05)],
])('healthy: %s', (_name, loss) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const chance = seededChance(seed);
    const losses = Array.from({ length: 1_000 }, (_, step) => loss(step, chance));
    expect(foundIn(rows(losses)), `seed ${seed}`).toEqual([]);
  }
});

test('the loss of a policy is no measure', () => {
  const lines = [...repeated(100, 0.0001), ...repeated(100, 4)].map(
    (loss, step) => `{'loss': ${loss}, 'reward': 0.5, 'epoch': ${step / 100}}`,
  );
  expect(signsOf(lines)).toEqual([]);
});

const overflow = (attempted: number, next: number) =>
  `[INFO] [log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss scale: ${attempted}, reducing to ${next}`;

test('overflows at the start are how a loss scale is found', () => {
  const lines = Array.from({ length: 32 }, (_, index) => overflow(2 ** (33 - index), 2 ** (32 - index)));
  expect(signsOf([...lines, row(1, 3)])).toEqual([]);
});

test('overflows that come alone are how it is kept', () => {
  expect(signsOf(Array.from({ length: 500 }, () => overflow(65_536, 32_768)))).toEqual([]);
  expect(signsOf(Array.from({ length: 500 }, () => overflow(2, 1)))).toEqual([]);
});

test.each([
  ['overflows at a scale of 1', Array.from({ length: 3 }, () => overflow(1, 1)), 3],
  ['overflows without an end', Array.from({ length: 64 }, () => overflow(1024, 1024)), 64],
  ['DeepSpeed', ['Exception: Current loss scale already at minimum - cannot decrease scale anymore.'], 1],
  [
    'fairseq',
    ['FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.'],
    1,
  ],
  [
    'Megatron, which skips every step',
    [1, 2, 3, 4].map(
      (step) => `iteration ${step}/ 9 | loss scale: 1.0 | number of skipped iterations:   1 |`,
    ),
    3,
  ],
])('an exhausted loss scale: %s', (_name, lines, line) => {
  expect(signsOf([row(0, 3), ...lines])).toMatchObject([
    { kind: 'loss_scale_exhausted', lastGoodStep: 0, line: line + 1 },
  ]);
});

test('a good step between overflows begins their count anew', () => {
  expect(signsOf([overflow(1, 1), overflow(1, 1), row(1, 3), overflow(1, 1), overflow(1, 1)])).toEqual([]);
});

test('a scale below 1 is one that fairseq allows', () => {
  const lines = [1, 0.5, 0.25, 0.125, 0.0625].map(
    (scale) => `NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: ${scale}`,
  );
  expect(signsOf(lines)).toEqual([]);
});

test('of a long line 500 characters are reported', () => {
  const [sign] = signsOf([`${'x'.repeat(800)} Minimum loss scale reached`]);
  expect(sign?.text).toHaveLength(500);
});
