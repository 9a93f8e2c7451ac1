import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compilePattern } from './namePattern.ts';
import { scanCheckpoints } from './scan.ts';
import { checkpointDir, type Files, writeFiles } from './testing/checkpointDir.ts';

async function scanned(root: string, options: { pattern?: string; entriesMax?: number } = {}) {
  const { pattern = null, ...rest } = options;
  return scanCheckpoints(root, { pattern: pattern === null ? null : compilePattern(pattern), ...rest });
}

async function only(files: Files) {
  const { candidates, problem } = await scanned(checkpointDir(files));
  expect(problem).toBeNull();
  expect(candidates).toHaveLength(1);
  return candidates[0];
}

test('finds checkpoints of all kinds, one level down too, and nothing else', async () => {
  const root = checkpointDir({
    'checkpoint-500/model.safetensors': 'abc',
    'checkpoint-500/optimizer.pt': 'defgh',
    'ckpt.pt': 'x',
    'out/step-7/lit_model.pth': 'y',
    'out/deeper/step-9/lit_model.pth': 'y',
    'train.log': 'loss',
    'checkpoints_index.json': '{}',
    'checkpoint-600.tmp/model.safetensors': 'a',
  });
  const { candidates, problem, isTrainingComplete } = await scanned(root);
  expect({ problem, isTrainingComplete }).toEqual({ problem: null, isTrainingComplete: false });
  expect(candidates).toMatchObject([
    { name: 'checkpoint-500', kind: 'directory', step: 500, bytes: 8, files: 2, format: 'torch' },
    { name: 'ckpt.pt', kind: 'file', step: null, bytes: 1, files: 1, format: 'torch' },
    { name: 'out/step-7', kind: 'directory', step: 7, bytes: 1, files: 1 },
  ]);
});

test('a directory called "checkpoint" is one, or the place of those in it', async () => {
  const place = checkpointDir({
    'checkpoint/step-100/__0_0.distcp': 'x',
    'checkpoint/step-200/__0_0.distcp': 'y',
    'final/lit_model.pth': 'z',
    'ckpt/checkpoint.pt': 'z',
  });
  const { candidates } = await scanned(place);
  expect(candidates.map(({ name, step }) => [name, step])).toEqual([
    ['checkpoint/step-100', 100],
    ['checkpoint/step-200', 200],
    ['ckpt', null],
    ['final', null],
  ]);
});

test('a pattern reaches as deep as it has parts', async () => {
  const root = checkpointDir({ 'a/b/run-12.bin': 'x', 'a/run-13.bin': 'x', 'checkpoint-5/x.pt': 'x' });
  const { candidates } = await scanned(root, { pattern: '*/*/run-{step}.bin' });
  expect(candidates).toMatchObject([{ name: 'a/b/run-12.bin', step: 12 }]);
});

test('another version as soon as anything is written, the same under another name', async () => {
  const root = checkpointDir({ 'step-1/a.pt': 'x', 'step-1/sub/b.pt': 'y' });
  const version = async () => (await scanned(root)).candidates[0]?.version;
  const first = await version();
  expect(await version()).toBe(first);
  renameSync(join(root, 'step-1'), join(root, 'step-2'));
  expect(await version()).toBe(first);
  appendFileSync(join(root, 'step-2/sub/b.pt'), 'z');
  const second = await version();
  expect(second).not.toBe(first);
  utimesSync(join(root, 'step-2/a.pt'), 1, 1);
  const third = await version();
  expect(third).not.toBe(second);
  writeFileSync(join(root, 'step-2/c.pt'), '');
  expect(await version()).not.toBe(third);
});

test('the newest file says when it was saved, an empty directory for itself', async () => {
  const root = checkpointDir({ 'step-1/a.pt': 'x', 'step-1/b.pt': 'y' });
  utimesSync(join(root, 'step-1/a.pt'), 100, 100);
  utimesSync(join(root, 'step-1/b.pt'), 200, 200);
  mkdirSync(join(root, 'step-2'));
  utimesSync(join(root, 'step-2'), 300, 300);
  const { candidates } = await scanned(root);
  expect(candidates).toMatchObject([
    { savedAtMs: 200_000, unfinished: null },
    { savedAtMs: 300_000, unfinished: 'it is empty', bytes: 0, files: 0 },
  ]);
});

test.each<[what: string, files: Files, marker: string | null]>([
  ['PyTorch', { 'step-1/__0_0.distcp': 'x', 'step-1/.metadata': 'x' }, '.metadata'],
  ['PyTorch before its metadata', { 'step-1/__0_0.distcp': 'x' }, null],
  [
    'the trainer',
    { 'checkpoint-5/model.safetensors': 'x', 'checkpoint-5/trainer_state.json': '{}' },
    'trainer_state.json',
  ],
  [
    'a trainer before its state',
    { 'checkpoint-5/model.safetensors': 'x', 'checkpoint-5/config.json': '{}' },
    null,
  ],
  ['DeepSpeed', { latest: 'global_step5\n', 'global_step5/mp_rank_00_model_states.pt': 'x' }, 'latest'],
  ['a later one', { latest: 'global_step10', 'global_step5/mp_rank_00_model_states.pt': 'x' }, 'latest'],
  ['an earlier one', { latest: 'global_step4', 'global_step5/mp_rank_00_model_states.pt': 'x' }, null],
  [
    'Megatron',
    { 'latest_checkpointed_iteration.txt': '500', 'iter_0000500/a.pt': 'x' },
    'latest_checkpointed_iteration.txt',
  ],
  ['Megatron not yet', { 'latest_checkpointed_iteration.txt': '400', 'iter_0000500/a.pt': 'x' }, null],
  [
    'an index with all its shards',
    {
      'step-1/config.json': '{}',
      'step-1/model.safetensors.index.json': '{}',
      'step-1/model-00001-of-00002.safetensors': 'x',
      'step-1/model-00002-of-00002.safetensors': 'x',
    },
    'model.safetensors.index.json',
  ],
  [
    'an index without them',
    {
      'step-1/config.json': '{}',
      'step-1/model.safetensors.index.json': '{}',
      'step-1/model-00002-of-00002.safetensors': 'x',
    },
    null,
  ],
  ['nothing', { 'step-1/lit_model.pth': 'x' }, null],
])('what says that it is complete: %s', async (_what, files, marker) => {
  expect(await only(files)).toMatchObject({ marker });
});

test('a temporary name inside says that it is not', async () => {
  expect(await only({ 'step-1/sub/.metadata.tmp': 'x', 'step-1/__0_0.distcp': 'x' })).toMatchObject({
    unfinished: 'sub/.metadata.tmp has a temporary name',
  });
});

test('a tracker that is no file is as good as none', async () => {
  const root = checkpointDir({ 'global_step5/mp_rank_00_model_states.pt': 'x', elsewhere: 'global_step5' });
  execFileSync('mkfifo', [join(root, 'latest')]);
  expect((await scanned(root)).candidates).toMatchObject([{ marker: null }]);
  rmSync(join(root, 'latest'));
  symlinkSync('elsewhere', join(root, 'latest'));
  expect((await scanned(root)).candidates).toMatchObject([{ marker: null }]);
});

test('the marker of a training that is complete', async () => {
  const root = checkpointDir({ 'training_complete.marker': '' });
  expect(await scanned(root)).toMatchObject({ isTrainingComplete: true });
  const below = checkpointDir({ 'other/training_complete.marker': '' });
  symlinkSync(join(root, 'training_complete.marker'), join(below, 'training_complete.marker'));
  expect(await scanned(below)).toMatchObject({ isTrainingComplete: false });
});

test('symbolic links are not followed, whatever they are called', async () => {
  const outside = checkpointDir({ 'checkpoint-9/model.pt': 'x', 'model.pt': 'x' });
  const root = checkpointDir({ 'checkpoint-5/model.pt': 'abc' });
  symlinkSync(join(outside, 'checkpoint-9'), join(root, 'checkpoint-9'));
  symlinkSync(join(outside, 'model.pt'), join(root, 'ckpt.pt'));
  symlinkSync(outside, join(root, 'out'));
  symlinkSync(outside, join(root, 'checkpoint-5/more'));
  const { candidates, problem } = await scanned(root);
  expect(candidates).toMatchObject([{ name: 'checkpoint-5', files: 1, bytes: 3 }]);
  expect(problem).toBeNull();
  const link = join(checkpointDir(), 'link');
  symlinkSync(root, link);
  expect(await scanned(link)).toEqual({
    candidates: [],
    problem: 'is a symbolic link',
    isTrainingComplete: false,
  });
});

test.each([
  ['does not exist', (root: string) => join(root, 'gone')],
  ['is not a directory', (root: string) => join(root, 'file')],
])('a directory that %s', async (problem, path) => {
  const root = checkpointDir({ file: 'x' });
  expect(await scanned(path(root))).toEqual({ candidates: [], problem, isTrainingComplete: false });
});

test('more entries than are looked at: some of them, and a word about it', async () => {
  const root = checkpointDir(
    Object.fromEntries(Array.from({ length: 30 }, (_, step) => [`step-${step}.pt`, 'x'])),
  );
  const { candidates, problem } = await scanned(root, { entriesMax: 10 });
  expect(candidates).toHaveLength(10);
  expect(problem).toBe('holds more than 10 entries; the others were not looked at');
});

test('more files inside than are looked at: the highest steps are, the others are left out', async () => {
  const root = checkpointDir();
  for (const step of [1, 2, 3])
    writeFiles(
      root,
      Object.fromEntries(Array.from({ length: 4 }, (_, file) => [`step-${step}/${file}.pt`, 'x'])),
    );
  const { candidates, problem } = await scanned(root, { entriesMax: 9 });
  expect(candidates.map(({ name }) => name)).toEqual(['step-2', 'step-3']);
  expect(problem).toBe('holds checkpoints of more than 9 files; 1 of them were skipped');
});

test('of 3,000 files the thousand with the highest steps', async () => {
  const root = checkpointDir();
  for (let step = 0; step < 3_000; step += 1) writeFileSync(join(root, `step-${step}.pt`), '');
  const { candidates, problem } = await scanned(root);
  expect(candidates).toHaveLength(1_000);
  expect(Math.min(...candidates.map(({ step }) => step ?? -1))).toBe(2_000);
  expect(problem).toBe('holds 3000 checkpoints; only the 1000 with the highest steps were looked at');
});
