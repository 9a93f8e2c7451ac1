import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileSystemQuestions } from '../host/fileSystemSpace.ts';
import type { Mount } from '../host/mounts.ts';
import { type FileSystemFact, probeFileSystems } from './fileSystems.ts';

const blocks = { bsize: 1, frsize: 1, blocks: 1_000, bavail: 500, files: 10, ffree: 5 };
const space = { sizeBytes: 1_000, availableBytes: 500, files: 10, availableFiles: 5 };
const mount: Mount = {
  mountPoint: '/',
  device: '/dev/a',
  type: 'ext4',
  readOnly: false,
  mountedReadOnly: false,
  remote: false,
};
const mounts = [mount, { ...mount, mountPoint: '/sets', mountedReadOnly: true }];

/** File systems of which some do not answer. */
function fileSystems(...hangs: string[]) {
  const asked: string[] = [];
  const hanging = new Map(hangs.map((path) => [path, Promise.withResolvers<typeof blocks>()]));
  const questions = new FileSystemQuestions({
    statfs: (path) => {
      asked.push(path);
      if (path === '/broken') return Promise.reject(new Error('EIO: i/o error'));
      return hanging.get(path)?.promise ?? Promise.resolve(blocks);
    },
    realPath: (path) => Promise.resolve(path),
  });
  const probe = (...paths: string[]): Promise<readonly FileSystemFact[]> =>
    probeFileSystems({ dataDir: '/data', paths, deadlineMs: 20, questions, mounts: () => mounts });
  return { asked, probe, answer: (path: string) => hanging.get(path)?.resolve(blocks) };
}

test('each path is read once, the data directory first', async () => {
  expect(await fileSystems().probe('/sets', '/data', '/broken')).toEqual([
    { path: '/data', isDataDir: true, space, readOnly: false, failure: null },
    { path: '/sets', isDataDir: false, space, readOnly: true, failure: null },
    { path: '/broken', isDataDir: false, space: null, readOnly: null, failure: 'EIO: i/o error' },
  ]);
});

test('a path that hangs is reported, asked only once, and read when it answers', async () => {
  const disks = fileSystems('/nfs');
  for (let round = 0; round < 3; round += 1) {
    const facts = await disks.probe('/nfs', '/sets');
    expect(facts.map(({ path, failure }) => [path, failure])).toEqual([
      ['/data', null],
      ['/nfs', 'no answer within 0.02 s'],
      ['/sets', null],
    ]);
  }
  expect(disks.asked.filter((path) => path === '/nfs')).toHaveLength(1);
  disks.answer('/nfs');
  const [, nfs] = await disks.probe('/nfs', '/sets');
  expect(nfs).toMatchObject({ space, failure: null });
});

test('behind two paths that hang the others are not asked, and nothing is reported about them', async () => {
  const disks = fileSystems('/a', '/b', '/c');
  const facts = await disks.probe('/a', '/b', '/c', '/sets');
  expect(disks.asked).toEqual(['/data', '/a', '/b']);
  expect(facts.map(({ failure }) => failure)).toEqual([
    null,
    'no answer within 0.02 s',
    'no answer within 0.02 s',
    undefined,
    undefined,
  ]);
  disks.answer('/a');
  await expect.poll(() => disks.asked).toContain('/c');
});

test('the data directory is read while two mounts hang', async () => {
  const disks = fileSystems('/a', '/b');
  await disks.probe('/a', '/b');
  expect(await disks.probe('/a', '/b')).toMatchObject([
    { path: '/data', isDataDir: true, space, failure: null },
    { path: '/a', failure: 'no answer within 0.02 s' },
    { path: '/b', failure: 'no answer within 0.02 s' },
  ]);
});

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-file-systems-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('the file systems of this machine', async () => {
  const link = join(directory, 'link');
  symlinkSync('/proc', link);
  const paths = [link, join(directory, 'absent')];
  const [data, proc, ...others] = await probeFileSystems({ dataDir: directory, paths, deadlineMs: 100_000 });
  expect(data).toMatchObject({ readOnly: false, failure: null });
  expect(data?.space?.sizeBytes).toBeGreaterThan(data?.space?.availableBytes ?? Number.POSITIVE_INFINITY);
  expect(proc).toMatchObject({ failure: null, space: null });
  expect(others).toEqual([]);
});

test('a further path that goes away is no failure; the data directory is', async () => {
  const gone = join(directory, 'gone');
  const parts = { dataDir: gone, paths: [join(directory, 'too')], deadlineMs: 100_000 };
  expect(await probeFileSystems(parts)).toMatchObject([
    { path: gone, failure: expect.stringContaining('ENOENT') },
  ]);
});
