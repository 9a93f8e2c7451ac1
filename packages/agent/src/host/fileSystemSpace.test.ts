import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { FileSystemSpaces, type Statfs } from './fileSystemSpace.ts';

type Answer = Awaited<ReturnType<Statfs>>;

const answer: Answer = { bsize: 4096, frsize: 4096, blocks: 1_000, bavail: 250, files: 500, ffree: 400 };
const space = { sizeBytes: 4_096_000, availableBytes: 1_024_000, files: 500, availableFiles: 400 };

/** File systems that answer when the test says so. */
function controlled() {
  const open = new Map<string, PromiseWithResolvers<Answer>>();
  const asked: string[] = [];
  const statfs: Statfs = (path) => {
    const question = Promise.withResolvers<Answer>();
    asked.push(path);
    open.set(path, question);
    return question.promise;
  };
  return { statfs, asked, answer: (path: string, text: Answer = answer) => open.get(path)?.resolve(text) };
}

test('values are those of the last answer', async () => {
  const disk = controlled();
  const spaces = new FileSystemSpaces(['/data'], { statfs: disk.statfs });
  spaces.ask(0);
  expect(spaces.known(0)).toEqual([{ path: '/data', space: null, isAnswering: true }]);
  disk.answer('/data');
  await spaces.answered();
  expect(spaces.known(1)).toEqual([{ path: '/data', space, isAnswering: true }]);
  spaces.ask(2);
  expect(spaces.known(2)).toEqual([{ path: '/data', space, isAnswering: true }]);
});

test('one that does not answer is asked once, keeps its last value, and holds up no other', async () => {
  const disk = controlled();
  const spaces = new FileSystemSpaces(['/dead', '/data'], { statfs: disk.statfs, deadlineMs: 5_000 });
  spaces.ask(0);
  disk.answer('/dead');
  disk.answer('/data');
  await spaces.answered();
  for (const nowMs of [10_000, 20_000, 30_000]) {
    spaces.ask(nowMs);
    await settled();
    disk.answer('/data');
    await settled();
  }
  expect(disk.asked.filter((path) => path === '/dead')).toHaveLength(2);
  expect(disk.asked.filter((path) => path === '/data')).toHaveLength(4);
  expect(spaces.known(15_000)).toMatchObject([{ isAnswering: true }, { isAnswering: true }]);
  expect(spaces.known(30_000)).toEqual([
    { path: '/dead', space, isAnswering: false },
    { path: '/data', space, isAnswering: true },
  ]);

  disk.answer('/dead', { ...answer, bavail: 0 });
  await spaces.answered();
  expect(spaces.known(31_000)[0]).toMatchObject({ space: { availableBytes: 0 }, isAnswering: true });
});

test('no more than two questions are open, so that threads are left for other files', async () => {
  const disk = controlled();
  const spaces = new FileSystemSpaces(['/dead1', '/dead2', '/data'], { statfs: disk.statfs });
  spaces.ask(0);
  spaces.ask(60_000);
  await settled();
  expect(disk.asked).toEqual(['/dead1', '/dead2']);
  expect(spaces.known(60_000).map(({ isAnswering }) => isAnswering)).toEqual([false, false, false]);

  disk.answer('/dead1');
  await expect.poll(() => disk.asked).toContain('/data');
  disk.answer('/data');
  await expect.poll(() => spaces.known(60_000)[2]?.space).toEqual(space);
});

test('what cannot be read has no value, nor has what answers with nothing', async () => {
  const refused = new FileSystemSpaces(['/data'], { statfs: () => Promise.reject(new Error('EIO')) });
  refused.ask(0);
  await refused.answered();
  expect(refused.known(1)).toEqual([{ path: '/data', space: null, isAnswering: true }]);

  const empty = new FileSystemSpaces(['/data'], { statfs: () => Promise.resolve({ ...answer, blocks: 0 }) });
  empty.ask(0);
  await empty.answered();
  expect(empty.known(1)).toMatchObject([{ space: null }]);
});

test('blocks are counted in fragments; a file system may have no fixed number of files', async () => {
  const spaces = new FileSystemSpaces(['/s3'], {
    statfs: () => Promise.resolve({ ...answer, bsize: 1_048_576, files: 0, ffree: 0 }),
  });
  spaces.ask(0);
  await spaces.answered();
  expect(spaces.known(1)[0]?.space).toEqual({ ...space, files: null, availableFiles: null });
});

test('on this machine', async () => {
  const spaces = new FileSystemSpaces([tmpdir(), '/no/such/folder']);
  spaces.ask(0);
  await spaces.answered();
  const { blocks, frsize } = statfsSync(tmpdir());
  expect(spaces.known(1)).toMatchObject([
    { path: tmpdir(), space: { sizeBytes: blocks * frsize } },
    { path: '/no/such/folder', space: null },
  ]);
});

/** Everything that was already decided has happened. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
