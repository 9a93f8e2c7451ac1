import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type FileSystemCalls,
  FileSystemProbe,
  type FileSystemSpace,
  isReadOnly,
  systemCalls,
} from './fileSystems.ts';

const space: FileSystemSpace = { sizeBytes: 1_000, availableBytes: 500, inodes: 10, inodesFree: 5 };

/** File systems of which some never answer. */
class FakeCalls implements FileSystemCalls {
  readonly asked: string[] = [];
  private readonly waiting = new Map<string, (space: FileSystemSpace) => void>();
  private readonly hangs: Set<string>;

  constructor(...hangs: string[]) {
    this.hangs = new Set(hangs);
  }

  space(path: string): Promise<FileSystemSpace> {
    this.asked.push(path);
    if (path === '/broken') return Promise.reject(new Error('EIO: i/o error'));
    if (!this.hangs.has(path)) return Promise.resolve(space);
    return new Promise((resolve) => this.waiting.set(path, resolve));
  }

  answer(path: string): void {
    this.hangs.delete(path);
    this.waiting.get(path)?.(space);
  }

  realPath(path: string): Promise<string> {
    return Promise.resolve(path);
  }

  mounts(): string {
    return '/dev/a / ext4 rw 0 0\n/dev/b /sets ext4 ro,noatime 0 0\n';
  }
}

function probeOf(calls: FileSystemCalls, ...paths: string[]): FileSystemProbe {
  return new FileSystemProbe({ dataDir: '/data', paths, deadlineMs: 20, calls });
}

test('each path is read once, the data directory first', async () => {
  const facts = await probeOf(new FakeCalls(), '/sets', '/data', '/broken').probe();
  expect(facts).toEqual([
    { path: '/data', isDataDir: true, space, readOnly: false, failure: null },
    { path: '/sets', isDataDir: false, space, readOnly: true, failure: null },
    { path: '/broken', isDataDir: false, space: null, readOnly: null, failure: 'EIO: i/o error' },
  ]);
});

test('a path that hangs is told, asked only once, and read when it answers', async () => {
  const calls = new FakeCalls('/nfs');
  const probe = probeOf(calls, '/nfs', '/sets');
  for (let round = 0; round < 3; round += 1) {
    const facts = await probe.probe();
    expect(facts.map(({ path, failure }) => [path, failure])).toEqual([
      ['/data', null],
      ['/nfs', 'no answer within 0.02 s'],
      ['/sets', null],
    ]);
  }
  expect(calls.asked.filter((path) => path === '/nfs')).toHaveLength(1);
  calls.answer('/nfs');
  const facts = await probe.probe();
  expect(facts[1]).toMatchObject({ space, failure: null });
});

test('paths that hang never take all the threads for files', async () => {
  const calls = new FakeCalls('/a', '/b', '/c', '/d');
  const probe = probeOf(calls, '/a', '/b', '/c', '/d', '/sets');
  const facts = await probe.probe();
  expect(calls.asked).toEqual(['/data', '/a', '/b']);
  expect(facts.find(({ path }) => path === '/c')).toMatchObject({ space: null, failure: undefined });
  calls.answer('/a');
  await probe.probe();
  expect(calls.asked).toContain('/c');
});

test.each<[string, boolean | null]>([
  ['/', false],
  ['/var/x', false],
  ['/mnt/data', true],
  ['/mnt/data/sub', true],
  ['/mnt/database', false],
  ['/with space/x', true],
  ['/covered/x', false],
])('of the mount that holds %s the options count', (path, readOnly) => {
  const mounts = [
    '/dev/a / ext4 rw,relatime,errors=remount-ro 0 0',
    'server:/x /mnt/data nfs4 ro,vers=4.2 0 0',
    String.raw`/dev/c /with\040space xfs ro 0 0`,
    '/dev/d /covered xfs ro 0 0',
    '/dev/e /covered xfs rw 0 0',
    'garbage',
  ].join('\n');
  expect(isReadOnly(mounts, path)).toBe(readOnly);
});

test('without any mount nothing is known', () => expect(isReadOnly('', '/x')).toBeNull());

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-file-systems-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('the file systems of this machine', async () => {
  const link = join(directory, 'link');
  symlinkSync('/proc', link);
  const absent = join(directory, 'absent');
  const probe = new FileSystemProbe({
    dataDir: directory,
    paths: [link, absent],
    deadlineMs: 10_000,
    calls: systemCalls,
  });
  const [data, proc, ...others] = await probe.probe();
  expect(data).toMatchObject({ readOnly: false, failure: null });
  expect(data?.space?.sizeBytes).toBeGreaterThan(data?.space?.availableBytes ?? Number.POSITIVE_INFINITY);
  expect(proc).toMatchObject({ failure: null, space: { sizeBytes: 0 } });
  expect(others).toEqual([]);
});

test('a further path that goes away is no failure; the data directory is', async () => {
  const gone = join(directory, 'gone');
  const probe = new FileSystemProbe({
    dataDir: gone,
    paths: [join(directory, 'too')],
    deadlineMs: 10_000,
    calls: systemCalls,
  });
  expect(await probe.probe()).toMatchObject([{ path: gone, failure: expect.stringContaining('ENOENT') }]);
});
