import {
  copyFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkpointDir } from './testing/checkpointDir.ts';
import { saveByTorch } from './testing/savedByTorch.ts';
import { verifyCheckpoint } from './verify.ts';

/** As PyTorch left it; tests damage copies. */
const saved = mkdtempSync(join(tmpdir(), 'muster-torch-'));

beforeAll(() => saveByTorch(saved), 60_000);
afterAll(() => rmSync(saved, { recursive: true }));

type Damage = (path: string) => void;

const cutTo =
  (share: number): Damage =>
  (path) =>
    truncateSync(path, Math.floor(statSync(path).size * share));

const changed =
  (change: (bytes: Buffer) => void): Damage =>
  (path) => {
    const bytes = readFileSync(path);
    change(bytes);
    writeFileSync(path, bytes);
  };

const flipMiddle = changed((bytes) => {
  const at = bytes.length >> 1;
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x01, at);
});
const zeroHead = changed((bytes) => bytes.fill(0, 0, 512));
const empty: Damage = (path) => truncateSync(path, 0);
const remove: Damage = (path) => rmSync(path);

async function verify(
  name: string,
  depth: 'quick' | 'deep',
  damage?: readonly [path: string, damage: Damage],
) {
  const root = checkpointDir();
  cpSync(join(saved, name), join(root, name), { recursive: true });
  if (damage !== undefined) damage[1](join(root, damage[0]));
  return verifyCheckpoint(root, name, { depth });
}

test.each([
  ['new.pt', 'torch', null, 1],
  ['last.ckpt', 'lightning', null, 1],
  ['checkpoint-500', 'huggingface', 500, 6],
  ['step-100', 'torch_dcp', 100, 4],
])('%s, as PyTorch saved it, is verified', async (name, format, step, files) => {
  const whole = { verdict: 'verified', format, step, files, problem: null };
  expect(await verify(name, 'quick')).toMatchObject({ ...whole, depth: 'quick', digest: null });
  const deep = await verify(name, 'deep');
  expect(deep).toMatchObject({
    ...whole,
    depth: 'deep',
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
  // The digest is of contents alone, wherever they lie and whenever they were written.
  expect((await verify(name, 'deep')).digest).toBe(deep.digest);
});

test('the format before PyTorch 1.6 keeps nothing that could be verified', async () => {
  const { digest, ...old } = await verify('old.pt', 'deep');
  expect(old).toMatchObject({ verdict: 'unverified', depth: null, format: 'torch' });
  expect(old.problem).toContain('before PyTorch 1.6');
  expect(digest).not.toBeNull();
  expect(await verify('old.pt', 'deep', ['old.pt', flipMiddle])).toMatchObject({ verdict: 'unverified' });
});

test.each<[name: string, path: string, what: string, damage: Damage, problem: string]>([
  [
    'new.pt',
    'new.pt',
    'cut in half',
    cutTo(0.5),
    'it was cut off: the directory that PyTorch writes at the end is missing',
  ],
  ['new.pt', 'new.pt', 'cut by its last bytes', cutTo(0.9999), 'it was cut off'],
  ['new.pt', 'new.pt', 'emptied', empty, 'it is empty'],
  ['new.pt', 'new.pt', 'with a zeroed head', zeroHead, 'data.pkl should begin there is something else'],
  ['last.ckpt', 'last.ckpt', 'cut in half', cutTo(0.5), 'it was cut off'],
  ['old.pt', 'old.pt', 'emptied', empty, 'it is empty'],
  ['old.pt', 'old.pt', 'with a zeroed head', zeroHead, 'it is damaged: it begins with zeros'],
  ['checkpoint-500', 'checkpoint-500/optimizer.pt', 'cut in half', cutTo(0.5), 'optimizer.pt was cut off'],
  ['checkpoint-500', 'checkpoint-500/optimizer.pt', 'emptied', empty, 'optimizer.pt is empty'],
  [
    'checkpoint-500',
    'checkpoint-500/trainer_state.json',
    'cut in half',
    cutTo(0.5),
    'trainer_state.json is not JSON',
  ],
  ['checkpoint-500', 'checkpoint-500/trainer_state.json', 'emptied', empty, 'trainer_state.json is empty'],
  [
    'checkpoint-500',
    'checkpoint-500/pytorch_model-00002-of-00002.bin',
    'removed',
    remove,
    'pytorch_model-00002-of-00002.bin is missing',
  ],
  ['step-100', 'step-100/__2_0.distcp', 'cut in half', cutTo(0.5), '__2_0.distcp was cut off'],
  ['step-100', 'step-100/__2_0.distcp', 'removed', remove, '__2_0.distcp is missing, which .metadata names'],
  ['step-100', 'step-100/__2_0.distcp', 'emptied', empty, '__2_0.distcp is empty'],
  [
    'step-100',
    'step-100/__0_0.distcp',
    'with a zeroed head',
    zeroHead,
    '__0_0.distcp is damaged: it begins with zeros',
  ],
  ['step-100', 'step-100/.metadata', 'removed', remove, '.metadata is missing'],
  ['step-100', 'step-100/.metadata', 'emptied', empty, '.metadata is empty'],
])('%s with %s %s is corrupt at a quick look', async (name, path, _what, damage, problem) => {
  const found = await verify(name, 'quick', [path, damage]);
  expect(found).toMatchObject({
    verdict: 'corrupt',
    depth: 'quick',
    problem: expect.stringContaining(problem),
  });
  expect((await verify(name, 'deep', [path, damage])).verdict).toBe('corrupt');
});

test.each([
  [
    'new.pt',
    'new.pt',
    /^it is damaged: new\/data\/0 has the CRC-32 [0-9a-f]{8} and was written with [0-9a-f]{8}$/,
  ],
  [
    'checkpoint-500',
    'checkpoint-500/optimizer.pt',
    /^optimizer\.pt is damaged: optimizer\/data\/0 has the CRC-32/,
  ],
  ['step-100', 'step-100/__0_0.distcp', /^__0_0\.distcp is damaged: archive\/data\/0 has the CRC-32/],
])('a flipped bit in the middle of %s is seen by a deep look only', async (name, path, problem) => {
  expect(await verify(name, 'quick', [path, flipMiddle])).toMatchObject({ verdict: 'verified' });
  expect(await verify(name, 'deep', [path, flipMiddle])).toMatchObject({
    verdict: 'corrupt',
    depth: 'deep',
    digest: null,
    problem: expect.stringMatching(problem),
  });
});

test('what was added before or after a file of PyTorch is damage', async () => {
  const surrounded =
    (before: string, after: string): Damage =>
    (path) =>
      writeFileSync(path, Buffer.concat([Buffer.from(before), readFileSync(path), Buffer.from(after)]));
  expect(await verify('new.pt', 'quick', ['new.pt', surrounded('PK\x03\x04', '')])).toMatchObject({
    verdict: 'corrupt',
  });
  expect(await verify('new.pt', 'quick', ['new.pt', surrounded('', 'more')])).toMatchObject({
    verdict: 'corrupt',
  });
});

test('one file that says nothing makes the whole checkpoint unverified', async () => {
  const found = await verify('checkpoint-500', 'deep', [
    'checkpoint-500/optimizer.pt',
    (path) => copyFileSync(join(saved, 'old.pt'), path),
  ]);
  expect(found).toMatchObject({ verdict: 'unverified', depth: null });
  expect(found.problem).toBe('optimizer.pt has the format before PyTorch 1.6, which keeps no sums');
});
