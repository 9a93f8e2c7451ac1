import { expect, test } from 'vitest';
import { compilePattern, matchPattern } from './namePattern.ts';
import { type EntryKind, recogniseName } from './names.ts';

test.each<[name: string, kind: EntryKind, step: number | null]>([
  ['ckpt.pt', 'file', null],
  ['step-00001000', 'directory', 1000],
  ['step-100', 'directory', 100],
  ['iter-000100-ckpt.pth', 'file', 100],
  ['checkpoint-500', 'directory', 500],
  ['out/checkpoint-5', 'directory', 5],
  ['epoch=3-step=1000.ckpt', 'file', 1000],
  ['epoch=3-step=1000-v1.ckpt', 'file', 1000],
  ['mnist-epoch=02-val_loss=0.32-step=77.ckpt', 'file', 77],
  ['epoch=3-step=1000.ckpt', 'directory', 1000],
  ['last.ckpt', 'file', null],
  ['last-v1.ckpt', 'file', null],
  ['global_step100', 'directory', 100],
  ['iter_0000500', 'directory', 500],
  ['checkpoint_epoch_3', 'directory', null],
  ['checkpoint_epoch_3.pt', 'file', null],
  ['epoch_0', 'directory', null],
  ['model_step_100.safetensors', 'file', 100],
  ['checkpoint_3_500.pt', 'file', 500],
  ['checkpoint_last.pt', 'file', null],
  ['checkpoint-500.pth.tar', 'file', 500],
  ['step_99999999999999999999.pt', 'file', null],
  ['step-000050.json', 'file', 50],
])('%s, a %s, is a checkpoint of step %s', (name, kind, step) => {
  expect(recogniseName(name, kind, null)).toEqual({ step });
});

test.each<[name: string, kind: EntryKind]>([
  ['train.log', 'file'],
  ['latest.json', 'file'],
  ['checkpoint.json', 'file'],
  ['epoch_3.json', 'file'],
  ['step-100.log', 'file'],
  ['checkpoint-500', 'file'],
  ['checkpoint-500.tmp', 'directory'],
  ['tmp-checkpoint-500', 'directory'],
  ['.tmp_ckpt.pt', 'file'],
  ['.checkpoint-500', 'directory'],
  ['ckpt.pt.tmp', 'file'],
  ['ckpt.pt.partial', 'file'],
  ['checkpoint-500.corrupt', 'directory'],
  ['ckpt.pt.corrupt', 'file'],
  ['step-100.orbax-checkpoint-tmp-123', 'directory'],
  ['checkpoints_index.json', 'file'],
  ['training_complete.marker', 'file'],
  ['latest', 'file'],
  ['latest', 'directory'],
  ['latest_checkpointed_iteration.txt', 'file'],
  ['model-00001-of-00005.safetensors', 'file'],
  ['optimizer_step_100.pt', 'file'],
  ['eval_step_100', 'directory'],
  ['runs', 'directory'],
])('%s, a %s, is none', (name, kind) => {
  expect(recogniseName(name, kind, null)).toBeNull();
});

test.each([
  ['run-{step}.bin', 'run-12.bin', { step: 12 }],
  ['run-{step}.bin', 'run-.bin', null],
  ['run-{step}.bin', 'run-12.bin2', null],
  ['save_*', 'save_a.b', { step: null }],
  ['save_*', 'save_a/b', null],
  ['*/model-{step}.pt', 'exp1/model-7.pt', { step: 7 }],
  ['*/model-{step}.pt', 'model-7.pt', null],
  ['*{step}*.pt', 'a12b.pt', { step: 12 }],
  ['{step}0', '120', { step: 12 }],
  ['a.c', 'abc', null],
  ['(+', '(+', { step: null }],
])('the pattern %s over %s', (text, path, expected) => {
  const pattern = compilePattern(text);
  expect(pattern && matchPattern(pattern, path)).toEqual(expected);
});

test('a pattern alone decides, but never for what is unfinished or set aside', () => {
  const pattern = compilePattern('*');
  expect(recogniseName('anything', 'file', pattern)).toEqual({ step: null });
  expect(recogniseName('checkpoint-500', 'directory', compilePattern('run-{step}'))).toBeNull();
  for (const name of ['a.tmp', 'a.partial', 'a.corrupt', '.hidden'])
    expect(recogniseName(name, 'file', pattern)).toBeNull();
});

test.each(['', '/abs/{step}', '../{step}', 'a//b', '{step}-{step}', 'a/b/c/d/e', 'x'.repeat(257)])(
  'the pattern "%s" is refused',
  (text) => {
    expect(compilePattern(text)).toBeNull();
  },
);

test('many stars over a long name are answered at once', () => {
  const pattern = compilePattern(`${'*a'.repeat(60)}b`);
  expect(pattern && matchPattern(pattern, 'a'.repeat(255))).toBeNull();
});
