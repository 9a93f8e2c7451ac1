/** Lines of programs beside the best known ones, as each writes them, with values of ours. */
import { expect, test } from 'vitest';
import { linesOf } from '../lines/lineReader.ts';
import type { Framework } from '../model.ts';
import { TrendWatch } from '../signs/trend.ts';
import { ProgressReader, type ProgressRow } from './progressReader.ts';

function read(output: string) {
  const rows: ProgressRow[] = [];
  const [reader, trend] = [new ProgressReader({ onRow: (row) => rows.push(row) }), new TrendWatch()];
  const signs = linesOf(output).flatMap((line) => {
    const row = reader.line(line);
    return row === null ? trend.line(line) : trend.row(row);
  });
  return { rows, signs, reader };
}

test.each<[Framework, string, ProgressRow['canonical']]>([
  [
    'maxtext',
    'completed step: 18, seconds: 5.125, TFLOP/s/device: 201.500, Tokens/s/device: 1598.400, total_weights: 65536, loss: 9.875',
    { step: 18, train_loss: 9.875, step_seconds: 5.125 },
  ],
  [
    'nanotron',
    '07/04/2025 10:00:00 [INFO|DP=0|PP=0|TP=0|node-1]: iteration: 20 / 15000 | consumed_tokens: 41.9M | ' +
      'elapsed_time_per_iteration_ms: 1.5K | tokens_per_sec: 1.4M | global_batch_size: 512 | lm_loss: 10.25 | ' +
      'lr: 0.00012 | model_tflops_per_gpu: 410 | grad_norm: 3.5',
    {
      step: 20,
      train_loss: 10.25,
      learning_rate: 0.00012,
      grad_norm: 3.5,
      step_seconds: 1.5,
      tokens_per_second: 1_400_000,
      tokens: 41_900_000,
    },
  ],
  [
    'verl',
    '(TaskRunner pid=4711) step:3 - global_seqlen/mean:9000.5 - actor/pg_loss:np.float64(0.0125) - actor/lr:1e-06 ' +
      '- actor/grad_norm:0.25 - critic/score/mean:0.5 - timing_s/step:41.25',
    { step: 3, train_loss: 0.0125, learning_rate: 1e-6, grad_norm: 0.25, step_seconds: 41.25 },
  ],
  ['verl', 'step:10 - train/loss:1.75 - train/lr(1e-3):0.01', { step: 10, train_loss: 1.75 }],
  [
    'modded_nanogpt',
    'step:0/1390 val_loss:10.8258 train_time:0ms step_avg:nanms',
    { step: 0, eval_loss: 10.8258 },
  ],
  [
    'modded_nanogpt',
    'step:7/5100 train_loss:6.5000 train_time:1750ms step_avg:250.50ms',
    { step: 7, train_loss: 6.5, step_seconds: 0.2505 },
  ],
  ['plain', 'epoch: 3450 loss: 0.125', { epoch: 3450, train_loss: 0.125 }],
  ['plain', 'Epoch 3/10, Train loss = 0.125, accuracy 0.9', { epoch: 3, train_loss: 0.125 }],
  ['plain', 'step 10 loss 2.3125 lr 3.0e-04', { step: 10, train_loss: 2.3125, learning_rate: 3e-4 }],
  ['plain', 'step 10: loss 2.3125, grad norm 1.5', { step: 10, train_loss: 2.3125, grad_norm: 1.5 }],
  ['plain', '[step 10/250] loss=2.3125 | lr=0.001', { step: 10, train_loss: 2.3125, learning_rate: 0.001 }],
  ['plain', 'Step: 10, Loss: 2.3125', { step: 10, train_loss: 2.3125 }],
  [
    'plain',
    'step 10 | loss 2.3125 | tokens seen 81920 | tokens/s 512',
    { step: 10, train_loss: 2.3125, tokens: 81_920 },
  ],
  ['json_lines', '{"tokens_seen": 81920, "loss": 2.3125}', { train_loss: 2.3125, tokens: 81_920 }],
  [
    'json_lines',
    '{"step": 10, "loss": 2.3125, "tokens": 4096, "consumed_tokens": 81920}',
    { step: 10, train_loss: 2.3125, tokens: 81_920 },
  ],
  [
    'plain',
    'Iteration 10 | train loss 2.3125 | val loss 2.5',
    { step: 10, train_loss: 2.3125, eval_loss: 2.5 },
  ],
  ['plain', 'epoch 2 step 10 loss 2.3125', { epoch: 2, step: 10, train_loss: 2.3125 }],
  [
    'megatron',
    ' samples/sec: 38.9 | iteration       10/     100 | elapsed time per iteration (ms): 3285.7 | learning rate: 3.0E-05 ' +
      '| approx flops per GPU: 49.2TFLOPS | lm_loss: 1.0750E+01 | loss scale: 65536.0 | number of skipped iterations:   0 |',
    { step: 10, train_loss: 10.75, learning_rate: 3e-5, step_seconds: 3.2857 },
  ],
  [
    'deepspeed',
    '[2022-08-01 10:00:00,000] [INFO] [timer.py:157:stop] 0/100, SamplesPerSec=12.5, MemAllocated=1.2GB, MaxMemAllocated=2.4GB',
    { step: 100, samples_per_second: 12.5 },
  ],
])('%s: %s', (framework, line, canonical) => {
  const { rows, reader, signs } = read(line);
  expect(rows.map((row) => row.canonical)).toEqual([canonical]);
  expect(reader.framework).toBe(framework);
  expect(signs).toEqual([]);
});

test.each([
  'Epoch 1/11:  10%|█         | 100/1000 [00:10<01:30, 10.00update/s, loss=0.6, update=100]',
  'step:3 - nothing is measured',
  'step 3 of the plan: loss of contact',
  'Epoch 1/1 with loss 0.6616564282085736',
  'Step 1: the loss function is cross entropy',
  'we print step 3 loss 2.5 in the middle of a line',
  'we stop at step:3/10 of the plan',
  'iteration: 3 / 10 | nothing | more',
  'the epoch: 3 loss: 4 of the paper',
  'epoch: 3 loss: lower than before',
])('%s is no line of metrics', (line) => expect(read(line).rows).toEqual([]));

test.each([
  [
    'completed step: 18, seconds: 5.125, TFLOP/s/device: 201.5, Tokens/s/device: 1598.4, total_weights: 65536, loss: nan',
  ],
  ['epoch: 3451 loss: nan'],
  ['step:3 - actor/pg_loss:nan - actor/lr:1e-06'],
  ['iteration: 20 / 15000 | consumed_tokens: 41.9M | lm_loss: nan | lr: 0.1'],
])('a loss that is no number is seen in %s', (line) =>
  expect(read(line).signs).toMatchObject([{ kind: 'nan_loss', line: 1 }]),
);

test('names that every object has are names of values', () => {
  const { rows } = read('Step 90 | constructor:7 toString:8 loss:1.5');
  expect(rows[0]?.values).toEqual({ step: 90, constructor: 7, toString: 8, loss: 1.5 });
});

test('a total that a row tells is the total of the training', () => {
  const { reader } = read('step:7/5100 train_loss:6.5000 train_time:1750ms step_avg:250.50ms');
  expect(reader.progress?.totalSteps).toBe(5_100);
});
