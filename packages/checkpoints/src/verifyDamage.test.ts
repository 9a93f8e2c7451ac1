/** What crashes, full disks and careless hands make of checkpoints: none of it may pass for whole. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { trialsOf } from '../../../test/support/trials.ts';
import { checkpointDir, type Files } from './testing/checkpointDir.ts';
import { archiveOf, dcpOf, metadataOf } from './testing/dcpFiles.ts';
import { headerOf, safetensorsOf } from './testing/safetensorsFile.ts';
import { torchEntries, withoutSums, zipOf } from './testing/torchFile.ts';
import { verifyCheckpoint } from './verify.ts';

const name = 'checkpoint-5';

/** @returns the directory of a checkpoint of these files, to be verified, also after changes */
function rootOf(files: Files): string {
  return checkpointDir(
    Object.fromEntries(Object.entries(files).map(([path, each]) => [`${name}/${path}`, each])),
  );
}

function verify(files: Files, depth: 'quick' | 'deep' = 'quick') {
  return verifyCheckpoint(rootOf(files), name, { depth });
}

const [first, second, third] = [archiveOf(1, 5_000), archiveOf(2, 9_000), archiveOf(3, 300)];
const dcp = dcpOf([
  [first, second, third],
  [third, first],
]);
const metadata = dcp['.metadata'] as Buffer;
const data = dcp['__0_0.distcp'] as Buffer;
const torch = zipOf(torchEntries(Buffer.alloc(5_000, 7)));
const unsummed = zipOf(withoutSums(torchEntries(Buffer.alloc(5_000, 7))));

const asSafetensors = safetensorsOf(headerOf({ a: 8_192 }), Buffer.alloc(8_192, 1));
const onlySafetensors = dcpOf([[asSafetensors]], () => 0);
const mixed = dcpOf([[first, asSafetensors]], (piece) => (piece === asSafetensors ? 0 : piece.length));

function cut(bytes: Buffer, share: number): Buffer {
  return bytes.subarray(0, Math.floor(bytes.length * share));
}

function zeroed(bytes: Buffer, from: number, to: number): Buffer {
  return Buffer.from(bytes).fill(0, from, to);
}

test.each<[what: string, files: Files, problem: RegExp]>([
  ['.metadata cut', { ...dcp, '.metadata': cut(metadata, 0.6) }, /^\.metadata is damaged or was cut off/],
  [
    '.metadata cut where another opcode is its end',
    { ...dcp, '.metadata': Buffer.concat([cut(metadata, 0.6), Buffer.from('.')]) },
    /^\.metadata is damaged/,
  ],
  [
    '.metadata of zeros',
    { ...dcp, '.metadata': Buffer.alloc(metadata.length) },
    /^\.metadata is damaged: it does not begin/,
  ],
  [
    '.metadata zeroed from the middle on',
    { ...dcp, '.metadata': zeroed(metadata, 200, metadata.length) },
    /does not end as a pickle/,
  ],
  ['.metadata with a hole', { ...dcp, '.metadata': zeroed(metadata, 150, 200) }, /^\.metadata is damaged/],
  [
    '.metadata with more behind it',
    { ...dcp, '.metadata': Buffer.concat([metadata, Buffer.from('more.')]) },
    /5 bytes follow its pickle/,
  ],
  [
    'a file cut behind its first archive',
    { ...dcp, '__0_0.distcp': data.subarray(0, first.length) },
    /^__0_0\.distcp was cut off: \.metadata looks for \d+ bytes in it/,
  ],
  [
    'a file cut behind its second archive',
    { ...dcp, '__0_0.distcp': data.subarray(0, first.length + second.length) },
    /^__0_0\.distcp was cut off/,
  ],
  [
    'files of two ranks swapped',
    { ...dcp, '__0_0.distcp': dcp['__1_0.distcp'] ?? '', '__1_0.distcp': data },
    /^__0_0\.distcp was cut off/,
  ],
  [
    'another file, which is longer',
    {
      '.metadata': metadataOf([{ file: '__0_0.distcp', offset: 0, length: second.length }]),
      '__0_0.distcp': data,
    },
    /its piece from byte 0 to \d+ /,
  ],
  [
    'a file whose archives are elsewhere',
    {
      '.metadata': metadataOf([{ file: '__0_0.distcp', offset: 100, length: second.length }]),
      '__0_0.distcp': data,
    },
    /not where \.metadata looks for it/,
  ],
  [
    'a hole where an archive begins',
    { ...dcp, '__0_0.distcp': zeroed(data, first.length - 22, first.length + 64) },
    /__0_0\.distcp is damaged/,
  ],
  [
    'safetensors in it cut',
    { ...mixed, '__0_0.distcp': (mixed['__0_0.distcp'] as Buffer).subarray(0, -1) },
    /__0_0\.distcp is damaged: its piece from byte \d+ to \d+ was cut off: its tensors need/,
  ],
  [
    'safetensors in it cut inside the header',
    { ...mixed, '__0_0.distcp': (mixed['__0_0.distcp'] as Buffer).subarray(0, first.length + 20) },
    /__0_0\.distcp is damaged: its piece from byte \d+ to \d+ was cut off: its header claims/,
  ],
  [
    'safetensors alone in it cut inside the header',
    { ...onlySafetensors, '__0_0.distcp': asSafetensors.subarray(0, 12) },
    /__0_0\.distcp is damaged: its piece from byte 0 to 12 was cut off: its header claims/,
  ],
  [
    'safetensors in it cut inside the length of the header',
    { ...mixed, '__0_0.distcp': (mixed['__0_0.distcp'] as Buffer).subarray(0, first.length + 3) },
    /__0_0\.distcp was cut off: a piece begins at byte \d+, and it has \d+ bytes in all/,
  ],
  [
    'safetensors in it missing',
    { ...mixed, '__0_0.distcp': (mixed['__0_0.distcp'] as Buffer).subarray(0, first.length) },
    /__0_0\.distcp was cut off: a piece begins at byte \d+, and it has \d+ bytes in all/,
  ],
  [
    'optimizer states of DeepSpeed alone',
    { 'global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt': torch },
    /^global_step5\/mp_rank_\{rank\}_model_states\.pt is missing$/,
  ],
  [
    'a model state of a rank missing',
    {
      'zero_pp_rank_0_mp_rank_00_model_states.pt': torch,
      'zero_pp_rank_2_mp_rank_00_model_states.pt': torch,
    },
    /zero_pp_rank_\{rank\}_mp_rank_00_model_states\.pt is missing for 1/,
  ],
  ['a shard of zeros', { 'pytorch_model-00001-of-00001.bin': Buffer.alloc(5_000) }, /begins with zeros/],
  [
    'a shard counted from 0 missing',
    { 'model-0-of-3.safetensors': asSafetensors, 'model-2-of-3.safetensors': asSafetensors },
    /^model-1-of-3\.safetensors is missing$/,
  ],
  [
    'a pickle of zeros in torch without sums',
    { 'model.pt': zeroed(unsummed, 64, 70) },
    /data\.pkl does not end as a pickle/,
  ],
  [
    'a log whose last line is cut',
    { 'model.pt': torch, 'trainer_state.json': '{\n "global_step": 5,\n "log_hist' },
    /is not JSON/,
  ],
])('%s: corrupt', async (_what, files, problem) => {
  expect(await verify(files)).toMatchObject({ verdict: 'corrupt', problem: expect.stringMatching(problem) });
});

test('a directory of a rank with nothing in it: corrupt', async () => {
  const root = checkpointDir({ 'iter_0000100/mp_rank_00/model_optim_rng.pt': torch });
  const verdict = () => verifyCheckpoint(root, 'iter_0000100', { depth: 'quick' });
  expect(await verdict()).toMatchObject({ verdict: 'verified' });
  mkdirSync(join(root, 'iter_0000100/mp_rank_01'));
  expect(await verdict()).toMatchObject({ verdict: 'corrupt', problem: 'mp_rank_01 is empty' });
});

const megabyte = 1024 * 1024;
const large = safetensorsOf(
  headerOf({ a: 100_000, b: 3 * megabyte }),
  Buffer.alloc(3 * megabyte + 100_000, 1),
);

test.each<[what: string, bytes: Buffer]>([
  ['all of its tensors', zeroed(asSafetensors, asSafetensors.length - 8_192, asSafetensors.length)],
  ['all from a page in a tensor on', zeroed(large, 300 * 4_096, large.length)],
  ['all from the page on that a tensor begins in', zeroed(large, 25 * 4_096, large.length)],
])('safetensors with zeros in place of %s: unverified', async (_what, bytes) => {
  for (const depth of ['quick', 'deep'] as const)
    expect(await verify({ 'model.safetensors': bytes }, depth)).toMatchObject({
      verdict: 'unverified',
      problem: 'model.safetensors ends in zeros, which is what a crash leaves behind',
    });
});

const placeCount = trialsOf(150, 50);

/** Spread over all of it, the first bytes and the last ones, the same in every run. */
function places(length: number): readonly number[] {
  const step = Math.max(1, Math.floor(length / placeCount));
  const spread = Array.from({ length: Math.floor(length / step) }, (_, index) => index * step);
  return [...new Set([...spread, 1, 2, length - 2, length - 1])];
}

test.each<[what: string, path: string, files: Files]>([
  ['torch', 'model.pt', { 'model.pt': torch }],
  ['torch without sums', 'model.pt', { 'model.pt': unsummed }],
  ['safetensors', 'model.safetensors', { 'model.safetensors': asSafetensors }],
  ['.metadata', '.metadata', dcp],
  ['a file of DCP', '__0_0.distcp', dcp],
  ['a file of DCP as safetensors', '__0_0.distcp', mixed],
])('%s cut anywhere is never whole', async (_what, path, files) => {
  const bytes = files[path] as Buffer;
  const root = rootOf(files);
  for (const length of places(bytes.length)) {
    writeFileSync(join(root, name, path), bytes.subarray(0, length));
    const { verdict } = await verifyCheckpoint(root, name, { depth: 'quick' });
    // Of a file of three bytes nobody can say what it was to be; and what ends where a list of tensors would begin may have none.
    const isDoubtful = length < 4 || (files === mixed && length === first.length);
    if (isDoubtful) expect(`${length} ${verdict}`).not.toBe(`${length} verified`);
    else expect(`${length} ${verdict}`).toBe(`${length} corrupt`);
  }
});

test('a flipped bit in what has sums is seen by a deep look, wherever it is', async () => {
  const at = torch.indexOf(Buffer.alloc(64, 7));
  const root = rootOf({ 'model.pt': torch });
  for (const place of places(5_000)) {
    const flipped = Buffer.from(torch);
    flipped.writeUInt8(flipped.readUInt8(at + place) ^ 0x10, at + place);
    writeFileSync(join(root, name, 'model.pt'), flipped);
    expect(await verifyCheckpoint(root, name, { depth: 'deep' })).toMatchObject({ verdict: 'corrupt' });
  }
});
