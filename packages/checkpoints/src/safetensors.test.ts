import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkpointDir } from './testing/checkpointDir.ts';
import { headerOf, safetensorsOf } from './testing/safetensorsFile.ts';
import { verifyCheckpoint } from './verify.ts';

const name = 'model_step_100.safetensors';

async function verify(bytes: Uint8Array, depth: 'quick' | 'deep' = 'quick') {
  return verifyCheckpoint(checkpointDir({ [name]: bytes }), name, { depth });
}

const header = headerOf({ 'layer.0': 400, 'layer.1': 800 });
const data = Buffer.alloc(1_200, 1);
const whole = safetensorsOf(header, data);
const tensor = (begin: unknown, end: unknown, more: object = {}) => ({
  dtype: 'U8',
  shape: [typeof end === 'number' && typeof begin === 'number' ? Math.abs(end - begin) : 1],
  data_offsets: [begin, end],
  ...more,
});

test('a whole one is verified, with padding and metadata too', async () => {
  expect(await verify(whole, 'deep')).toMatchObject({
    verdict: 'verified',
    depth: 'deep',
    format: 'safetensors',
    step: 100,
    bytes: whole.length,
    digest: expect.stringMatching(/^sha256:/),
  });
  const padded = `${JSON.stringify({ __metadata__: { format: 'pt' }, ...header })}   `;
  expect(await verify(safetensorsOf(padded, data))).toMatchObject({ verdict: 'verified', problem: null });
});

test('the step stands in the metadata where the name has none', async () => {
  const bytes = safetensorsOf({ __metadata__: { step: '70' }, ...header }, data);
  const root = checkpointDir({ 'last.safetensors': bytes });
  expect(await verifyCheckpoint(root, 'last.safetensors', { depth: 'quick' })).toMatchObject({ step: 70 });
});

test('types of four and six bits are counted in bits', async () => {
  const small = { a: { dtype: 'F4', shape: [3, 2], data_offsets: [0, 3] } };
  expect(await verify(safetensorsOf(small, Buffer.alloc(3)))).toMatchObject({ verdict: 'verified' });
});

test('damage inside of a tensor cannot be seen, and changes the digest', async () => {
  const flipped = Buffer.from(whole);
  flipped.writeUInt8(9, whole.length - 600);
  const [before, after] = [await verify(whole, 'deep'), await verify(flipped, 'deep')];
  expect(after.verdict).toBe('verified');
  expect(after.digest).not.toBe(before.digest);
});

const claiming = (headerBytes: bigint) => {
  const bytes = Buffer.from(whole);
  bytes.writeBigUInt64LE(headerBytes);
  return bytes;
};

test.each<[what: string, bytes: Uint8Array, problem: RegExp]>([
  ['emptied', Buffer.alloc(0), /^it is empty$/],
  ['cut in its length', whole.subarray(0, 5), /was cut off: it has 5 bytes/],
  [
    'cut in its header',
    whole.subarray(0, 60),
    /was cut off: its header claims \d+ bytes, and it has 60 in all/,
  ],
  ['cut in half', whole.subarray(0, -600), /was cut off: its tensors need 1200 bytes, and 600 are there/],
  ['cut by a byte', whole.subarray(0, -1), /need 1200 bytes, and 1199 are there/],
  ['with a zeroed head', Buffer.concat([Buffer.alloc(64), whole.subarray(64)]), /its header is not JSON/],
  ['with bytes after it', Buffer.concat([whole, Buffer.alloc(3)]), /3 bytes follow its last tensor/],
  [
    'a header of 4 GB',
    claiming(4n << 30n),
    /header claims 4294967296 bytes, and the format allows 100000000/,
  ],
  ['a header of 2^64 - 1 bytes', claiming((1n << 64n) - 1n), /header claims 18446744073709551615 bytes/],
  ['a header that is a list', safetensorsOf('[1]', data), /its header is not JSON/],
  [
    'a header that is cut',
    safetensorsOf(JSON.stringify(header).slice(0, -5), data),
    /its header is not JSON/,
  ],
  [
    'a header nested a thousand deep',
    safetensorsOf(`{"a":${'['.repeat(1_000)}`, data),
    /its header is nested/,
  ],
  ['a tensor that is none', safetensorsOf({ a: 1 }, data), /a is not described as a tensor/],
  [
    'a shape that is none',
    safetensorsOf({ a: tensor(0, 1, { shape: [-1] }) }, data),
    /a is not described as a tensor/,
  ],
  ['negative offsets', safetensorsOf({ a: tensor(-8, 0) }, data), /a has impossible offsets/],
  ['offsets the wrong way round', safetensorsOf({ a: tensor(8, 0) }, data), /a has impossible offsets/],
  [
    'offsets past all numbers',
    safetensorsOf({ a: tensor(0, 2 ** 60, { shape: [1] }) }, data),
    /a has impossible offsets/,
  ],
  ['offsets that are no numbers', safetensorsOf({ a: tensor('0', '8') }, data), /a has impossible offsets/],
  [
    'a size that is not that of its shape',
    safetensorsOf({ a: tensor(0, 8, { shape: [9] }) }, Buffer.alloc(8)),
    /not what its shape takes/,
  ],
  [
    'tensors that overlap',
    safetensorsOf({ a: tensor(0, 8), b: tensor(4, 12) }, Buffer.alloc(12)),
    /b overlaps another tensor/,
  ],
  [
    'a gap before the first',
    safetensorsOf({ a: tensor(4, 8) }, Buffer.alloc(8)),
    /nothing fills the bytes before a/,
  ],
  ['a gap between two', safetensorsOf({ a: tensor(0, 4), b: tensor(8, 12) }, Buffer.alloc(12)), /before b/],
])('%s: corrupt', async (_what, bytes, problem) => {
  expect(await verify(bytes)).toMatchObject({ verdict: 'corrupt', problem: expect.stringMatching(problem) });
});

test('a type that is not known is no damage', async () => {
  const bytes = safetensorsOf({ a: tensor(0, 8, { dtype: 'F1' }) }, Buffer.alloc(8));
  expect(await verify(bytes)).toMatchObject({
    verdict: 'unverified',
    problem: expect.stringContaining('the type F1'),
  });
});

test('a header of 90 MB, which the format allows, is not read', async () => {
  const root = checkpointDir({ [name]: claiming(90_000_000n) });
  truncateSync(join(root, name), 100_000_000);
  expect(await verifyCheckpoint(root, name, { depth: 'quick' })).toMatchObject({
    verdict: 'unverified',
    problem: expect.stringContaining('a header of 90000000 bytes'),
  });
});

test('it is recognised by what is in it under a name of the user', async () => {
  const root = checkpointDir({ 'run-5.bin': whole, 'run-6.bin': whole.subarray(0, -1) });
  expect(await verifyCheckpoint(root, 'run-5.bin', { depth: 'quick' })).toMatchObject({
    verdict: 'verified',
    format: 'safetensors',
  });
});
