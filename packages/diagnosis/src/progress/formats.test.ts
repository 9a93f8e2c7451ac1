/** Lines as each program writes them, with values of ours. */
import { expect, test } from 'vitest';
import { linesOf } from '../lines/lineReader.ts';
import type { Framework } from '../model.ts';
import type { Values } from './lineShape.ts';
import { ProgressReader, type ProgressRow } from './progressReader.ts';

function rowsOf(output: string): readonly ProgressRow[] {
  const rows: ProgressRow[] = [];
  const reader = new ProgressReader({ onRow: (row) => rows.push(row) });
  for (const line of linesOf(output)) reader.line(line);
  return rows;
}

test.each<[Framework, string, Values, ProgressRow['canonical']]>([
  [
    'nanogpt',
    'iter 250: loss 1.8041, time 512.34ms, mfu 31.07%',
    { step: 250, loss: 1.8041, step_time_s: 0.51234, mfu_percent: 31.07 },
    { step: 250, train_loss: 1.8041, step_seconds: 0.51234 },
  ],
  [
    'nanogpt',
    'iter 0: loss 4.3021, time 9001.00ms, mfu -100.00%',
    { step: 0, loss: 4.3021, step_time_s: 9.001, mfu_percent: null },
    { step: 0, train_loss: 4.3021, step_seconds: 9.001 },
  ],
  [
    'nanogpt',
    'iter 7: loss nan, time 20.00ms',
    { step: 7, loss: null, step_time_s: 0.02, mfu_percent: null },
    { step: 7, step_seconds: 0.02 },
  ],
  [
    'nanogpt',
    'step 500: train loss 1.7702, val loss 1.9311',
    { step: 500, train_loss_eval: 1.7702, val_loss: 1.9311 },
    { step: 500, eval_loss: 1.9311 },
  ],
  [
    'litgpt',
    'Epoch 2 | iter 96 step 12 | loss train: 3.250, val: 3.400 | iter time: 410.50 ms (step)' +
      ' remaining time: 1:02:03',
    { epoch: 2, iter: 96, step: 12, loss: 3.25, val_loss: 3.4, step_time_s: 0.4105 },
    { epoch: 2, step: 12, train_loss: 3.25, eval_loss: 3.4 },
  ],
  [
    'litgpt',
    'Epoch 1 | iter 8 step 1 | loss train: 3.250, val: n/a | iter time: 410.50 ms',
    { epoch: 1, iter: 8, step: 1, loss: 3.25, val_loss: null, step_time_s: 0.4105 },
    { epoch: 1, step: 1, train_loss: 3.25 },
  ],
  [
    'litgpt',
    'iter 100: val loss 3.1234, val time: 812.00 ms',
    { iter: 100, val_loss: 3.1234, val_time_s: 0.812 },
    { eval_loss: 3.1234 },
  ],
  [
    'hf_trainer',
    "{'loss': 1.25, 'grad_norm': inf, 'learning_rate': 3e-05, 'epoch': 0.5}",
    { loss: 1.25, grad_norm: null, learning_rate: 3e-5, epoch: 0.5 },
    { train_loss: 1.25, learning_rate: 3e-5, epoch: 0.5 },
  ],
  [
    'hf_trainer',
    "{'loss': '0.8125', 'grad_norm': 'nan', 'learning_rate': '1e-04', 'num_tokens': '5.225e+04', 'epoch': '0.25'}",
    { loss: 0.8125, grad_norm: null, learning_rate: 1e-4, num_tokens: 52_250, epoch: 0.25 },
    { train_loss: 0.8125, learning_rate: 1e-4, epoch: 0.25, tokens: 52_250 },
  ],
  [
    'hf_trainer',
    " 12%|█▏        | 6/50 [00:06<00:44,  1.00s/it]{'loss': 0.69, 'rewards/chosen': -0.01, 'epoch': 0.12}",
    { loss: 0.69, 'rewards/chosen': -0.01, epoch: 0.12 },
    { step: 6, train_loss: 0.69, epoch: 0.12 },
  ],
  [
    'hf_trainer',
    "{'eval_loss': 0.71, 'eval_runtime': 4.5, 'eval_steps_per_second': 2.0, 'epoch': 1.0}",
    { eval_loss: 0.71, eval_runtime: 4.5, eval_steps_per_second: 2, epoch: 1 },
    { eval_loss: 0.71, epoch: 1 },
  ],
  [
    'hf_trainer',
    "{'train_runtime': 60.5, 'train_steps_per_second': 3.3, 'train_loss': 1.9, 'epoch': 2.0}",
    { train_runtime: 60.5, train_steps_per_second: 3.3, train_loss: 1.9, epoch: 2 },
    { epoch: 2 },
  ],
  [
    'lightning',
    'Epoch 2:  50%|█████     | 40/80 [00:04<00:04,  9.80it/s, v_num=3, train_loss=0.512, val_loss=0.600]',
    { epoch: 2, batch: 40, batches: 80, v_num: 3, train_loss: 0.512, val_loss: 0.6 },
    { epoch: 2, step: 200, train_loss: 0.512, eval_loss: 0.6 },
  ],
  [
    'lightning',
    'Epoch 0:   1%|          | 1/80 [00:04<00:04,  9.80it/s, loss=nan.0, v_num=3]',
    { epoch: 0, batch: 1, batches: 80, loss: null, v_num: 3 },
    { epoch: 0, step: 1 },
  ],
  [
    'deepspeed',
    '[2024-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step=40, skipped=2,' +
      ' lr=[0.0003], mom=[(0.9, 0.95)]',
    { step: 40, skipped: 2, learning_rate: 3e-4 },
    { step: 40, learning_rate: 3e-4 },
  ],
  [
    'deepspeed',
    '[INFO] [timer.py:260:stop] epoch=0/micro_step=80/global_step=40, RunningAvgSamplesPerSec=9.5,' +
      ' CurrSamplesPerSec=9.25, MemAllocated=1.5GB, MaxMemAllocated=2.5GB',
    { step: 40, samples_per_s: 9.25, memory_gb: 1.5, max_memory_gb: 2.5 },
    { step: 40, samples_per_second: 9.25 },
  ],
  [
    'megatron',
    ' [2025-06-07 08:09:10.123456] iteration       20/     400 | consumed samples:          640 |' +
      ' elapsed time per iteration (ms): 812.6 | throughput per GPU (TFLOP/s/GPU): 201.5 | learning' +
      ' rate: 2.500000E-05 | global batch size:    32 | lm loss: 7.125000E+00 | loss scale: 1.0 |' +
      ' grad norm: 3.125 | num zeros: 5 | params norm: 10.5 | number of skipped iterations:   0 |' +
      ' number of nan iterations:   0 |',
    {
      step: 20,
      total_steps: 400,
      samples: 640,
      step_time_s: 0.8126,
      tflops_per_gpu: 201.5,
      learning_rate: 2.5e-5,
      loss: 7.125,
      loss_scale: 1,
      grad_norm: 3.125,
      skipped_iterations: 0,
      nan_iterations: 0,
    },
    { step: 20, step_seconds: 0.8126, learning_rate: 2.5e-5, train_loss: 7.125, grad_norm: 3.125 },
  ],
  [
    'megatron',
    '[default1]: iteration       3/     400 | elapsed time per iteration (s): 2.50 | lm loss: nan |' +
      ' samples per second: 12.800 | TFLOPs: 99.5 |',
    { step: 3, total_steps: 400, step_time_s: 2.5, loss: null, samples_per_s: 12.8, tflops_per_gpu: 99.5 },
    { step: 3, step_seconds: 2.5, samples_per_second: 12.8 },
  ],
  [
    'megatron',
    ' validation loss at iteration 100 on validation set | lm loss value: 6.500000E+00 | lm loss' +
      ' PPL: 6.651416E+02 |',
    { step: 100, val_loss: 6.5 },
    { step: 100, eval_loss: 6.5 },
  ],
  [
    'torchtitan',
    '[rank0]:[titan] 2025-06-07 08:09:10,123 - root - INFO - \x1b[31mstep: 30  \x1b[32mloss: ' +
      ' 6.12345  \x1b[38;2;180;60;0mgrad_norm:  0.5000  \x1b[36mmemory: 30.00GiB(40.00%) ' +
      ' \x1b[34mtps: 12,345  \x1b[33mtflops: 1,200.50  \x1b[35mmfu: N/A\x1b[39m',
    {
      step: 30,
      loss: 6.12345,
      grad_norm: 0.5,
      memory_gib: 30,
      tokens_per_s: 12_345,
      tflops: 1200.5,
      mfu_percent: null,
    },
    { step: 30, train_loss: 6.12345, grad_norm: 0.5, tokens_per_second: 12_345 },
  ],
  [
    'torchtitan',
    '[titan] validate step: 30  loss:  6.5000  memory: 30.00GiB(40.00%)  tps: 20,000',
    { step: 30, val_loss: 6.5, memory_gib: 30, tokens_per_s: 20_000 },
    { step: 30, eval_loss: 6.5, tokens_per_second: 20_000 },
  ],
  [
    'torchtune',
    '2|90|Loss: 1.5:  10%|█         | 9/90 [00:20<03:00,  2.22s/it]',
    { epoch: 2, step: 90, loss: 1.5, from: 'bar' },
    { epoch: 2, step: 90, train_loss: 1.5 },
  ],
  [
    'torchtune',
    'Step 90 | loss:1.5 lr:0.0003 tokens_per_second_per_gpu:1500.25 peak_memory_alloc:10.5 ',
    { step: 90, loss: 1.5, lr: 3e-4, tokens_per_second_per_gpu: 1500.25, peak_memory_alloc: 10.5 },
    { step: 90, train_loss: 1.5, learning_rate: 3e-4, tokens_per_second: 1500.25 },
  ],
  [
    'fairseq',
    '2022-02-03 04:05:06 | INFO | train_inner | {"epoch": 2, "update": 1.5, "loss": "7.5", "wps":' +
      ' "1000", "ups": "4", "num_updates": "300", "lr": "0.0005", "gnorm": "1.25"}',
    { epoch: 2, update: 1.5, loss: 7.5, wps: 1000, ups: 4, num_updates: 300, lr: 5e-4, gnorm: 1.25 },
    {
      epoch: 2,
      step: 300,
      train_loss: 7.5,
      tokens_per_second: 1000,
      learning_rate: 5e-4,
      grad_norm: 1.25,
      step_seconds: 0.25,
    },
  ],
  [
    'fairseq',
    '2022-02-03 04:05:06 | INFO | train_inner | epoch 002:    100 / 200 loss=7.5, wps=1000, ups=0,' +
      ' num_updates=300, lr=0.0005',
    { epoch: 2, loss: 7.5, wps: 1000, ups: 0, num_updates: 300, lr: 5e-4 },
    { epoch: 2, step: 300, train_loss: 7.5, tokens_per_second: 1000, learning_rate: 5e-4 },
  ],
  [
    'fairseq',
    "2022-02-03 04:05:06 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 8.25 | ppl 304.4 | num_updates 400",
    { epoch: 2, valid_loss: 8.25, valid_ppl: 304.4, valid_num_updates: 400 },
    { epoch: 2, step: 400, eval_loss: 8.25 },
  ],
  [
    'json_lines',
    '{"step": 12, "loss": 0.75, "lr": 0.001, "tokens_per_sec": 900, "host": "a", "ok": true, "at": null}',
    { step: 12, loss: 0.75, lr: 0.001, tokens_per_sec: 900, host: 'a' },
    { step: 12, train_loss: 0.75, learning_rate: 0.001, tokens_per_second: 900 },
  ],
  [
    'json_lines',
    'INFO:train:{"global_step": 12, "train/loss": NaN, "eval/loss": "0.5"}',
    { global_step: 12, 'train/loss': null, 'eval/loss': 0.5 },
    { step: 12, eval_loss: 0.5 },
  ],
  [
    'fairseq',
    '2022-02-03 04:05:06 | INFO | train | epoch 002 | loss 9.5 | num_updates 400 | lr 0.0005',
    { epoch: 2, train_loss: 9.5, train_num_updates: 400, train_lr: 5e-4 },
    { epoch: 2, step: 400, learning_rate: 5e-4 },
  ],
  [
    'json_lines',
    '{"step": 1.5, "epoch": 1, "loss": 0.5, "train_loss": 0.75}',
    { step: 1.5, epoch: 1, loss: 0.5, train_loss: 0.75 },
    { epoch: 1, train_loss: 0.5 },
  ],
  [
    'json_lines',
    '{"split": "val", "epoch": 3, "loss": 0.25}',
    { split: 'val', epoch: 3, loss: 0.25 },
    { epoch: 3, eval_loss: 0.25 },
  ],
])('%s: %s', (framework, output, values, canonical) => {
  const rows = rowsOf(output);
  expect(rows.map((row) => row.framework)).toEqual([framework]);
  expect(rows[0]?.values).toEqual(values);
  expect(rows[0]?.canonical).toEqual(canonical);
});

test.each([
  // Configurations, reports and other people's lines.
  "{'epoch': 3, 'lr': 0.001, 'loss': 'cross_entropy'}",
  "{'model': 'small', 'hidden_size': 512}",
  '{"level": "info", "msg": "step done", "step": 3}',
  '{"loss": 0.5}',
  '{"epoch": 3, "sample_rate": 44100}',
  `${'.'.repeat(20_000)} iter 5: loss 2.5, time 5ms`,
  '{"step": 3, "loss": 0.5',
  '{"step": {"loss": 1}, "lr": "fast"}',
  'Epoch 0:   0%|          | 0/80 [00:00<?, ?it/s]',
  'Epoch 0:   0%|          | 0/80 [00:00<?, ?it/s, v_num=3]',
  'Validation DataLoader 0:  50%|█████     | 5/10 [00:00<00:00, 50.00it/s, loss=3]',
  'iteration 5 of 10 | the loss falls |',
  ' [before the start of training step] datetime: 2025-01-02 03:04:05 iteration 5/ 10',
  'Step 4 | nothing to say',
  'Step 2: loss function chosen',
  'learning rate: 0.1 | lm loss: 2.0',
  'step: 5 | loss scale unchanged',
  '2022-02-03 04:05:06 | INFO | train | {"epoch": 1',
  '2022-02-03 04:05:06 | INFO | train_inner | begin of epoch',
  'iter 5: loss function, time 5ms',
  'step 5: train loss falls, val loss rises',
  'Epoch 1 | iter 8 step 1 | loss train: falls, val: n/a | iter time: 410.50 ms',
  'step:  5  loss:  falls  grad_norm:  0.5',
  '1|5|Loss: falls:   0%|',
])('no line of metrics: %s', (output) => {
  expect(rowsOf(output).map(({ values }) => values)).toEqual([]);
});

test('several lines of metrics that carriage returns part are rows of one line', () => {
  const output =
    'first\nEpoch 0:  50%|# | 1/2 [00:01<00:01, 1.00it/s, loss=2]\rEpoch 0: 100%|##| 2/2 [00:02<00:00, 1.00it/s, loss=1]\n';
  expect(rowsOf(output).map(({ line, values }) => [line, values['loss']])).toEqual([
    [2, 2],
    [2, 1],
  ]);
});
