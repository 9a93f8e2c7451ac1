/** Archives that PyTorch would not write, and that somebody may: nothing of them is inflated, believed or overread. */
import { closeSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkpointDir } from './testing/checkpointDir.ts';
import { type StoredEntry, torchEntries, zipOf } from './testing/torchFile.ts';
import { verifyCheckpoint } from './verify.ts';

async function verify(bytes: Uint8Array, depth: 'quick' | 'deep' = 'quick') {
  return verifyCheckpoint(checkpointDir({ 'ckpt.pt': bytes }), 'ckpt.pt', { depth });
}

const tensor = Buffer.alloc(1_000, 7);
const [pickle, data, version] = torchEntries(tensor) as [StoredEntry, StoredEntry, StoredEntry];
const whole = zipOf([pickle, data, version]);

/** The archive with one field of its end or of its first directory record changed. */
function withField(change: (bytes: Buffer, directoryAt: number) => void): Buffer {
  const bytes = Buffer.from(whole);
  change(bytes, bytes.readUInt32LE(bytes.length - 6));
  return bytes;
}

test('an archive written by hand is as good as one by PyTorch', async () => {
  expect(await verify(whole, 'deep')).toMatchObject({ verdict: 'verified', depth: 'deep', format: 'torch' });
});

test.each<[what: string, bytes: Uint8Array, problem: RegExp]>([
  ['no data.pkl', zipOf([data, version]), /it lacks data\.pkl or version/],
  ['no version', zipOf([pickle, data]), /it lacks data\.pkl or version/],
  ['two entries of one name', zipOf([pickle, data, data, version]), /two entries of one name/],
  [
    'a size beyond the file',
    zipOf([pickle, { ...data, claimedBytes: 0xfffffff0 }, version]),
    /stored with two sizes/,
  ],
  [
    'an entry that overlaps another',
    withField((bytes, at) => bytes.writeUInt32LE(0, at + 46 + 'archive/data.pkl'.length + 42)),
    /overlap/,
  ],
  [
    'an entry that reaches into the directory',
    withField((bytes, at) => {
      for (const field of [20, 24]) bytes.writeUInt32LE(0x7fffffff, at + field);
    }),
    /reaches beyond the entries/,
  ],
  [
    'a header with another name',
    withField((bytes) => bytes.write('X', 30)),
    /the header of archive\/data\.pkl contradicts the directory/,
  ],
  [
    'a header with another sum',
    withField((bytes) => bytes.writeUInt32LE(1, 14)),
    /contradicts the directory/,
  ],
  [
    'a header with another size',
    withField((bytes) => bytes.writeUInt32LE(1, 22)),
    /contradicts the directory/,
  ],
  [
    'a header that is compressed',
    withField((bytes) => bytes.writeUInt16LE(8, 8)),
    /contradicts the directory/,
  ],
  [
    'a descriptor that is not there',
    withField((bytes) => bytes.writeUInt16LE(8, 6)),
    /what follows archive\/data\.pkl contradicts/,
  ],
  [
    'a broken directory',
    withField((bytes, at) => bytes.writeUInt32LE(0, at)),
    /directory at its end is broken/,
  ],
  [
    'a name beyond the directory',
    withField((bytes, at) => bytes.writeUInt16LE(0xffff, at + 28)),
    /directory at its end is broken/,
  ],
  [
    'more entries counted',
    withField((bytes) => bytes.writeBigUInt64LE(4n, bytes.length - 98 + 32)),
    /is broken|counts 4/,
  ],
  [
    'fewer entries counted',
    withField((bytes) => bytes.writeBigUInt64LE(2n, bytes.length - 98 + 32)),
    /counts 2 entries and lists 3/,
  ],
  [
    'a directory larger than the file',
    withField((bytes) => bytes.writeBigUInt64LE(1n << 62n, bytes.length - 98 + 40)),
    /lacks \d+ bytes before the directory/,
  ],
  [
    'a locator that leads elsewhere',
    withField((bytes) => bytes.writeBigUInt64LE(1n, bytes.length - 42 + 8)),
    /contradict each other/,
  ],
  [
    'a locator without its record',
    withField((bytes) => bytes.writeUInt32LE(0, bytes.length - 98)),
    /contradict each other/,
  ],
  [
    'bytes missing in the middle',
    Buffer.concat([whole.subarray(0, 200), whole.subarray(264)]),
    /lacks 64 bytes before/,
  ],
  [
    'bytes too many in the middle',
    Buffer.concat([whole.subarray(0, 200), Buffer.alloc(64), whole.subarray(200)]),
    /should begin there is something else/,
  ],
  [
    'bytes too many before it',
    Buffer.concat([whole.subarray(0, 64), whole]),
    /64 bytes more than were written/,
  ],
])('%s: corrupt', async (_what, bytes, problem) => {
  expect(await verify(bytes)).toMatchObject({ verdict: 'corrupt', problem: expect.stringMatching(problem) });
});

test.each<[what: string, entries: readonly StoredEntry[], problem: RegExp]>([
  [
    'a bomb',
    [pickle, { ...data, method: 8, claimedBytes: 0xfffffff0 }, version],
    /archive\/data\/0 compressed/,
  ],
  ['an encrypted entry', [pickle, { ...data, flags: 1 }, version], /archive\/data\/0 encrypted/],
  ['another archive', [{ name: 'weights.npy', data: tensor }], /that torch\.save did not write/],
  [
    'entries beside its own',
    [pickle, data, version, { name: 'other/x', data: tensor }],
    /entries that torch\.save does not write/,
  ],
])('%s: unverified, and nothing is inflated', async (_what, entries, problem) => {
  expect(await verify(zipOf(entries), 'deep')).toMatchObject({
    verdict: 'unverified',
    problem: expect.stringMatching(problem),
  });
});

test('a sum that is wrong is seen across the borders of what is read at once', async () => {
  // Larger than two chunks, so that its sum is made of three parts.
  const large = Buffer.alloc(9 * 1024 * 1024, 3);
  expect(await verify(zipOf(torchEntries(tensor, large, tensor)), 'deep')).toMatchObject({
    verdict: 'verified',
  });
  const [first, small, wrong, ...rest] = torchEntries(tensor, large, tensor) as StoredEntry[];
  const entries = [first, small, { ...wrong, crc: 1 }, ...rest] as StoredEntry[];
  expect(await verify(zipOf(entries), 'deep')).toMatchObject({
    verdict: 'corrupt',
    problem: expect.stringMatching(
      /archive\/data\/1 has the CRC-32 [0-9a-f]{8} and was written with 00000001/,
    ),
  });
});

test('a directory of 4 GB is claimed and not read', async () => {
  const root = checkpointDir();
  const end = whole.subarray(-98);
  const sparse = join(root, 'large.pt');
  writeFileSync(sparse, whole.subarray(0, 64));
  const bytes = 5 * 1024 ** 3;
  truncateSync(sparse, bytes - 98);
  const directoryAt = BigInt(bytes - 98) - (4n << 30n);
  const claimed = Buffer.from(end);
  claimed.writeBigUInt64LE(4n << 30n, 40);
  claimed.writeBigUInt64LE(directoryAt, 48);
  claimed.writeBigUInt64LE(BigInt(bytes - 98), 64);
  const file = openSync(sparse, 'r+');
  writeSync(file, claimed, 0, claimed.length, bytes - 98);
  closeSync(file);
  expect(await verifyCheckpoint(root, 'large.pt', { depth: 'quick' })).toMatchObject({
    verdict: 'unverified',
    problem: 'it has a directory of 4294967296 bytes, more than is looked at',
  });
});
