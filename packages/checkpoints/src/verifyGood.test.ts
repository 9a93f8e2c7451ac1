/**
 * What programs save today and what is unusual about it: a good checkpoint is never corrupt. Written by hand after the
 * specifications of the formats, as PyTorch 2.6 and later, safetensors 0.6 and the trainers around them write it.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkpointDir, type Files } from './testing/checkpointDir.ts';
import { archiveOf, dcpOf, metadataOf } from './testing/dcpFiles.ts';
import { headerOf, safetensorsOf } from './testing/safetensorsFile.ts';
import { newerEntries, torchEntries, withoutSums, writeSparseTorchFile, zipOf } from './testing/torchFile.ts';
import { verifyCheckpoint } from './verify.ts';

const tensor = Buffer.alloc(5_000, 7);
const entries = [...torchEntries(tensor, new Uint8Array(), tensor), ...newerEntries];
const torch = zipOf(entries);
const values = Buffer.alloc(8_192, 1);

/** One tensor of a type. */
const typed = (dtype: string, shape: readonly number[], bytes: number) =>
  safetensorsOf({ a: { dtype, shape, data_offsets: [0, bytes] } }, Buffer.alloc(bytes, 1));
const shard = (name: string) => safetensorsOf(headerOf({ [name]: 8 }), Buffer.alloc(8, 1));

const single: readonly (readonly [what: string, name: string, bytes: Buffer])[] = [
  ['torch with all that 2.6 writes beside the tensors', 'ckpt.pt', torch],
  ['torch without sums', 'ckpt.pt', zipOf(withoutSums(entries))],
  [
    'torch with sums and sizes behind the data, too',
    'ckpt.pt',
    zipOf(entries, { alignment: 64, descriptors: true }),
  ],
  ['the same without sums', 'ckpt.pt', zipOf(withoutSums(entries), { alignment: 64, descriptors: true })],
  [
    'torch with room for data that comes later',
    'ckpt.pt',
    zipOf(entries.map((each) => (each.name === 'archive/data/0' ? { ...each, crc: 0 } : each))),
  ],
  ['torch aligned to pages', 'ckpt.pt', zipOf(entries, { alignment: 4_096, descriptors: true })],
  ['torch of no tensor', 'last.ckpt', zipOf(torchEntries())],
  ['torch under the suffix of Hugging Face', 'model-step_5.bin', torch],
  [
    'torch of the oldest binary pickle',
    'ckpt.pt',
    zipOf([{ name: 'archive/data.pkl', data: Buffer.from('}q\0.', 'latin1') }, ...entries.slice(1)]),
  ],
  ...(
    [
      ...['BOOL', 'U8', 'I8', 'F8_E5M2', 'F8_E4M3', 'F8_E8M0', 'F8_E4M3FNUZ', 'F8_E5M2FNUZ'].map(
        (dtype) => [dtype, 1] as const,
      ),
      ...['U16', 'I16', 'F16', 'BF16'].map((dtype) => [dtype, 2] as const),
      ...['U32', 'I32', 'F32'].map((dtype) => [dtype, 4] as const),
      ...['U64', 'I64', 'F64', 'C64'].map((dtype) => [dtype, 8] as const),
    ] as const
  ).map(([dtype, bytes]): readonly [string, string, Buffer] => [
    `safetensors of ${dtype}`,
    'step_1.safetensors',
    typed(dtype, [3, 5], 15 * bytes),
  ]),
  ['safetensors of F4', 'step_1.safetensors', typed('F4', [3, 2], 3)],
  ['safetensors of F6', 'step_1.safetensors', typed('F6_E2M3', [4], 3)],
  ['safetensors of a scalar', 'step_1.safetensors', typed('F32', [], 4)],
  ['safetensors of an empty tensor', 'step_1.safetensors', typed('BF16', [0, 4_096], 0)],
  [
    'safetensors with empty tensors between others',
    'step_1.safetensors',
    safetensorsOf(
      {
        z: { dtype: 'F32', shape: [2], data_offsets: [8, 16] },
        b: { dtype: 'F32', shape: [0], data_offsets: [8, 8] },
        a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] },
      },
      Buffer.alloc(16, 1),
    ),
  ],
  ['safetensors of no tensor', 'step_1.safetensors', safetensorsOf({}, Buffer.alloc(0))],
  [
    'safetensors with words in every script',
    'step_1.safetensors',
    safetensorsOf(
      { __metadata__: { format: 'pt', 'название\n"': '{"a": [1]}' }, ...headerOf({ 層: 8 }) },
      Buffer.alloc(8, 1),
    ),
  ],
  [
    'safetensors with blanks around its header',
    'step_1.safetensors',
    safetensorsOf(`  ${JSON.stringify(headerOf({ a: 8_192 }))}${' '.repeat(57)}`, values),
  ],
  [
    'safetensors that ends in a tensor of zeros',
    'step_1.safetensors',
    safetensorsOf(
      headerOf({ a: 8_192, lora_B: 2 * 1024 * 1024 }),
      Buffer.concat([values, Buffer.alloc(2 * 1024 * 1024)]),
    ),
  ],
  [
    'JSON with numbers that are none',
    'step_1.json',
    Buffer.from('{"loss": NaN, "best": -Infinity, "NaN": "NaN\\""}'),
  ],
];

const pieces = [archiveOf(1), archiveOf(2), archiveOf(3)];
const asSafetensors = safetensorsOf(
  { __metadata__: { DCP_VERSION: '1.0', DCP_SHARDING_INFO: '{}' }, ...headerOf({ a: 8_192 }) },
  values,
);
const trainer: Files = { 'config.json': '{}', 'trainer_state.json': '{"global_step": 5}' };

const directories: readonly (readonly [what: string, files: Files])[] = [
  ['DCP of two ranks', dcpOf([pieces, pieces])],
  ['DCP without sums', dcpOf([pieces, pieces].map((each) => each.map(() => archiveOf(4, 5_000, 0))))],
  [
    'DCP as safetensors, after what was not a tensor',
    dcpOf([[archiveOf(1), asSafetensors], [asSafetensors]], (piece) =>
      piece === asSafetensors ? 0 : piece.length,
    ),
  ],
  ['DCP with a rank that had nothing to save', { ...dcpOf([pieces]), '__1_0.distcp': '' }],
  [
    'DCP with something that nothing refers to',
    {
      '__0_0.distcp': Buffer.concat(pieces),
      '.metadata': metadataOf([
        { file: '__0_0.distcp', offset: archiveOf(1).length, length: archiveOf(2).length },
      ]),
    },
  ],
  [
    'DCP with words before the rank',
    {
      'model__0_0.distcp': archiveOf(1),
      '.metadata': metadataOf([{ file: 'model__0_0.distcp', offset: 0, length: archiveOf(1).length }]),
    },
  ],
  [
    'DCP in a directory below',
    Object.fromEntries(Object.entries(dcpOf([pieces])).map(([path, each]) => [`model/${path}`, each])),
  ],
  [
    'a trainer whose loss is not a number',
    {
      'config.json': '{}',
      'model.safetensors': shard('a'),
      'trainer_state.json': '{"global_step": 5, "log_history": [{"loss": NaN}]}',
    },
  ],
  [
    'a log of one value to a line',
    { ...trainer, 'model.safetensors': shard('a'), 'log.json': '{"step": 1, "loss": NaN}\n{"step": 2}\n' },
  ],
  [
    'a hidden file that other programs call so',
    { ...trainer, 'model.safetensors': shard('a'), '.metadata': 'saved by hand' },
  ],
  [
    'nanotron, which counts from 0',
    {
      'model/lm_head/model_weight_pp-rank-0-of-1_tp-rank-0-of-2.safetensors': shard('a'),
      'model/lm_head/model_weight_pp-rank-0-of-1_tp-rank-1-of-2.safetensors': shard('b'),
      'optimizer/optimizer_pp-0-of-1_dp-0-of-1_tp-0-of-1_exp-0-of-1.pt': torch,
      'checkpoint_metadata.json': '{}',
    },
  ],
  [
    'DCP as Hugging Face, of which a rank has nothing in one file',
    {
      'shard-00001-model-00001-of-00002.safetensors': shard('a'),
      'shard-00001-model-00002-of-00002.safetensors': shard('b'),
      'shard-00002-model-00002-of-00002.safetensors': shard('b'),
    },
  ],
  [
    'DeepSpeed of stage 3',
    Object.fromEntries(
      [0, 1].flatMap((rank) =>
        ['model', 'optim'].map((state) => [
          `global_step5/zero_pp_rank_${rank}_mp_rank_00_${state}_states.pt`,
          torch,
        ]),
      ),
    ),
  ],
  [
    'Megatron of two by two',
    Object.fromEntries(
      ['00_000', '00_001', '01_000', '01_001'].map((rank) => [`mp_rank_${rank}/model_optim_rng.pt`, torch]),
    ),
  ],
  ['one file that is the whole of a set', { ...trainer, 'model-00001-of-00001.safetensors': shard('a') }],
];

test.each(single)('%s: verified', async (_what, name, bytes) => {
  const root = checkpointDir({ [name]: bytes });
  for (const depth of ['quick', 'deep'] as const)
    expect(await verifyCheckpoint(root, name, { depth })).toMatchObject({
      verdict: 'verified',
      problem: null,
    });
});

test.each(directories)('%s: verified', async (_what, files) => {
  const root = checkpointDir(
    Object.fromEntries(Object.entries(files).map(([path, each]) => [`checkpoint-5/${path}`, each])),
  );
  for (const depth of ['quick', 'deep'] as const)
    expect(await verifyCheckpoint(root, 'checkpoint-5', { depth })).toMatchObject({
      verdict: 'verified',
      problem: null,
    });
});

test.each<[what: string, files: Files]>([
  [
    'pieces that were compressed',
    {
      '__0_0.distcp': 'zstd',
      '.metadata': metadataOf([{ file: '__0_0.distcp', offset: 0, length: 4, transforms: ['stream.zstd'] }]),
    },
  ],
  [
    'bytes that a program wrote in its own way',
    {
      '__0_0.distcp': Buffer.concat([archiveOf(1), Buffer.from('its own')]),
      '.metadata': metadataOf([
        { file: '__0_0.distcp', offset: 0, length: archiveOf(1).length },
        { file: '__0_0.distcp', offset: archiveOf(1).length, length: 7 },
      ]),
    },
  ],
  [
    '.metadata of a protocol that is not known',
    {
      '__0_0.distcp': archiveOf(1),
      '.metadata': Buffer.from('\x80\x06K\x01.', 'latin1'),
    },
  ],
  [
    'shards without an index',
    { 'model-00001-of-00002.safetensors': shard('a'), 'model-00002-of-00002.safetensors': shard('b') },
  ],
  ['a type of numbers that is not known', { 'model.safetensors': typed('F2', [4], 1) }],
  [
    'a raw file that begins with zeros',
    { 'model.safetensors': shard('a'), 'memory.bin': Buffer.alloc(5_000) },
  ],
])('%s: unverified, and not corrupt', async (_what, files) => {
  const root = checkpointDir(
    Object.fromEntries(Object.entries(files).map(([path, each]) => [`checkpoint-5/${path}`, each])),
  );
  expect(await verifyCheckpoint(root, 'checkpoint-5', { depth: 'deep' })).toMatchObject({
    verdict: 'unverified',
  });
});

test('a file of more than 4 GiB, without sums, with offsets and sizes that 32 bits do not hold', async () => {
  const root = checkpointDir();
  writeSparseTorchFile(join(root, 'ckpt.pt'), 5 * 1024 ** 3, 2);
  expect(await verifyCheckpoint(root, 'ckpt.pt', { depth: 'quick' })).toMatchObject({
    verdict: 'verified',
    bytes: expect.toSatisfy((bytes: number) => bytes > 10 * 1024 ** 3),
  });
});

test('70,000 tensors', async () => {
  const root = checkpointDir({
    'ckpt.pt': zipOf(torchEntries(...Array.from({ length: 70_000 }, () => Buffer.alloc(4, 1)))),
  });
  expect(await verifyCheckpoint(root, 'ckpt.pt', { depth: 'deep' })).toMatchObject({ verdict: 'verified' });
});

test('directories that have nothing in them are of no concern, unless they are of a rank', async () => {
  const root = checkpointDir({ 'checkpoint-5/model.safetensors': shard('a') });
  mkdirSync(join(root, 'checkpoint-5/logs'));
  expect(await verifyCheckpoint(root, 'checkpoint-5', { depth: 'quick' })).toMatchObject({
    verdict: 'verified',
  });
});
