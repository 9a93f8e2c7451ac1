import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkpointDir, type Files } from './testing/checkpointDir.ts';
import { metadataOf } from './testing/dcpFiles.ts';
import { headerOf, safetensorsOf } from './testing/safetensorsFile.ts';
import { torchEntries, zipOf } from './testing/torchFile.ts';
import { verifyCheckpoint } from './verify.ts';

const torch = zipOf(torchEntries(Buffer.alloc(100, 1)));
const shardOf = (tensor: string) => safetensorsOf(headerOf({ [tensor]: 8 }), Buffer.alloc(8));
const index = (weights: Readonly<Record<string, unknown>>) => JSON.stringify({ weight_map: weights });

async function verify(files: Files, name = 'checkpoint-5') {
  const root = checkpointDir(
    Object.fromEntries(Object.entries(files).map(([path, each]) => [`${name}/${path}`, each])),
  );
  return verifyCheckpoint(root, name, { depth: 'deep' });
}

const whole: Files = {
  'config.json': '{}',
  'model.safetensors.index.json': index({
    a: 'model-00001-of-00002.safetensors',
    b: 'model-00002-of-00002.safetensors',
  }),
  'model-00001-of-00002.safetensors': shardOf('a'),
  'model-00002-of-00002.safetensors': shardOf('b'),
  'optimizer.pt': torch,
  'trainer_state.json': '{"global_step": 5}',
  'tokenizer.model': 'anything',
};

function without(path: string): Files {
  return Object.fromEntries(Object.entries(whole).filter(([each]) => each !== path));
}

test('what all of it makes is verified; words beside it are not looked into', async () => {
  expect(await verify(whole)).toMatchObject({
    verdict: 'verified',
    depth: 'deep',
    format: 'huggingface',
    files: 7,
    step: 5,
  });
});

test('the step of the trainer stands where the name has none', async () => {
  expect(await verify(whole, 'last')).toMatchObject({ step: 5 });
});

const modelStates: Files = { 'global_step5/mp_rank_00_model_states.pt': torch };
const rank = (zero: number) => `global_step5/zero_pp_rank_${zero}_mp_rank_00_optim_states.pt`;

test.each<[what: string, files: Files, problem: string]>([
  [
    'a shard that the index names is missing',
    {
      ...whole,
      'model.safetensors.index.json': index({ a: 'model-00001-of-00002.safetensors', c: 'more.safetensors' }),
    },
    'more.safetensors is missing, which model.safetensors.index.json names',
  ],
  [
    'a shard outside',
    { ...whole, 'model.safetensors.index.json': index({ a: '../../etc/passwd' }) },
    '../../etc/passwd is missing, which model.safetensors.index.json names',
  ],
  [
    'a tensor is not in its shard',
    { ...whole, 'model.safetensors.index.json': index({ c: 'model-00001-of-00002.safetensors' }) },
    'model-00001-of-00002.safetensors lacks c, which model.safetensors.index.json looks for in it',
  ],
  [
    'a number is left out, without an index',
    {
      'model-00001-of-00003.safetensors': shardOf('a'),
      'model-00003-of-00003.safetensors': shardOf('c'),
    },
    'model-00002-of-00003.safetensors is missing',
  ],
  [
    'JSON is none',
    { ...whole, 'config.json': '{"a": ' },
    'config.json is not JSON: it is damaged or was cut off',
  ],
  ['a state is empty', { ...whole, 'rng_state.pth': '' }, 'rng_state.pth is empty'],
  [
    "a rank's optimizer is missing",
    { ...whole, ...modelStates, [rank(0)]: torch, [rank(2)]: torch },
    'global_step5/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt is missing for 1 of the ranks up to 2',
  ],
  [
    'a part of the model is missing',
    { 'mp_rank_01_model_states.pt': torch },
    'mp_rank_{rank}_model_states.pt is missing for 1 of the ranks up to 1',
  ],
  [
    'a directory of Megatron is missing',
    { 'mp_rank_00/model_optim_rng.pt': torch, 'mp_rank_02/model_optim_rng.pt': torch },
    'mp_rank_{rank}/model_optim_rng.pt is missing for 1 of the ranks up to 2',
  ],
  ['there is no .metadata', { 'dcp/__0_0.distcp': torch }, 'dcp/.metadata is missing'],
  [
    '.metadata names nothing, and a rank is missing',
    { '.metadata': metadataOf([]), '__0_0.distcp': torch, '__2_0.distcp': torch },
    '__{rank}_0.distcp is missing for 1 of the ranks up to 2',
  ],
])('%s: corrupt', async (_what, files, problem) => {
  expect(await verify(files)).toMatchObject({ verdict: 'corrupt', problem });
});

test('directories without a file in them are corrupt', async () => {
  const root = checkpointDir();
  mkdirSync(join(root, 'checkpoint-5/sub'), { recursive: true });
  const found = await verifyCheckpoint(root, 'checkpoint-5', { depth: 'deep' });
  expect(found).toMatchObject({ verdict: 'corrupt', problem: 'it is empty', files: 0 });
});

test.each<[what: string, files: Files, problem: string]>([
  ['only words', { 'config.json': '{}', 'readme.txt': 'x' }, 'it holds no file of a known format'],
  [
    'a state of a format that is not known',
    { ...whole, 'extra.bin': 'abc' },
    'extra.bin has an unknown format',
  ],
  [
    'a pickle',
    { ...whole, 'extra.pt': Buffer.from('\x80\x04}.', 'latin1') },
    'extra.pt is a pickle, which is not loaded to look at it',
  ],
  [
    'tensors that were not saved by torch.save',
    {
      '.metadata': metadataOf([{ file: '__0_0.distcp', offset: 0, length: 14 }]),
      '__0_0.distcp': 'something else',
    },
    '__0_0.distcp holds what torch.save did not write',
  ],
])('%s: unverified', async (_what, files, problem) => {
  expect(await verify(files)).toMatchObject({ verdict: 'unverified', depth: null, problem });
});

test('JSON nested too deeply to be parsed is left alone', async () => {
  // A parser would take a gigabyte for these 30 MB.
  const nested = '['.repeat(30 * 1024 * 1024);
  expect(await verify({ ...whole, 'notes.json': nested })).toMatchObject({ verdict: 'verified' });
});

test('the names in .metadata are found wherever they stand', async () => {
  // Across the border of what is read at once.
  const chunk = 4 * 1024 * 1024;
  const text = Buffer.alloc(chunk + 100, 0x20);
  text.write('__0_0.distcp');
  text.write('__7_3.distcp', chunk - 6);
  // A text and nothing else, as far as a pickle goes: it says of no piece where it is.
  const pickle = Buffer.concat([Buffer.from('\x80\x04X\0\0\0\0', 'latin1'), text, Buffer.from('.')]);
  pickle.writeUInt32LE(text.length, 3);
  expect(await verify({ '.metadata': pickle, '__0_0.distcp': torch })).toMatchObject({
    verdict: 'corrupt',
    problem: '__7_3.distcp is missing, which .metadata names',
  });
});

test('several problems are counted', async () => {
  expect(
    await verify({ ...without('model-00002-of-00002.safetensors'), 'a.pt': '', 'b.pt': '' }),
  ).toMatchObject({
    problem: 'model-00002-of-00002.safetensors is missing (and 3 more)',
  });
});

test('JSON too long to be parsed has to end as it begins', async () => {
  const long = (end: string) => `{"log": "${'x'.repeat(33 * 1024 * 1024)}"${end}`;
  expect(await verify({ ...whole, 'trainer_state.json': long('}\n') })).toMatchObject({
    verdict: 'verified',
  });
  expect(await verify({ ...whole, 'trainer_state.json': long('') })).toMatchObject({ verdict: 'corrupt' });
});
