import { execFileSync } from 'node:child_process';
import { constants, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { open as openFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type FileSystemCalls, FileSystemQuestions, FileSystemSpaces } from './fileSystemSpace.ts';

type Answer = Awaited<ReturnType<FileSystemCalls['statfs']>>;

const asking = (statfs: FileSystemCalls['statfs']) =>
  new FileSystemQuestions({ statfs, realPath: (path) => Promise.resolve(path) });

const answer: Answer = { bsize: 4096, frsize: 4096, blocks: 1_000, bavail: 250, files: 500, ffree: 400 };
const space = { sizeBytes: 4_096_000, availableBytes: 1_024_000, files: 500, availableFiles: 400 };

/** File systems that answer when the test lets them. */
function controlled() {
  const open = new Map<string, PromiseWithResolvers<Answer>>();
  const asked: string[] = [];
  const statfs: FileSystemCalls['statfs'] = (path) => {
    const question = Promise.withResolvers<Answer>();
    asked.push(path);
    open.set(path, question);
    return question.promise;
  };
  return {
    questions: asking(statfs),
    asked,
    answer: (path: string, text: Answer = answer) => open.get(path)?.resolve(text),
  };
}

test('values are those of the last answer', async () => {
  const disk = controlled();
  const spaces = new FileSystemSpaces(['/data'], { questions: disk.questions });
  const answered = spaces.ask(0);
  expect(spaces.readings(0)).toEqual([{ path: '/data', space: null, isAnswering: true }]);
  disk.answer('/data');
  await answered;
  expect(spaces.readings(1)).toEqual([{ path: '/data', space, isAnswering: true }]);
  void spaces.ask(2);
  expect(spaces.readings(2)).toEqual([{ path: '/data', space, isAnswering: true }]);
});

test('one that does not answer is asked once, keeps its last value, and holds up no other', async () => {
  const disk = controlled();
  const spaces = new FileSystemSpaces(['/dead', '/data'], { questions: disk.questions, deadlineMs: 5_000 });
  const answered = spaces.ask(0);
  disk.answer('/dead');
  disk.answer('/data');
  await answered;
  for (const nowMs of [10_000, 20_000, 30_000]) {
    void spaces.ask(nowMs);
    await settled();
    disk.answer('/data');
    await settled();
  }
  expect(disk.asked.filter((path) => path === '/dead')).toHaveLength(2);
  expect(disk.asked.filter((path) => path === '/data')).toHaveLength(4);
  expect(spaces.readings(15_000)).toMatchObject([{ isAnswering: true }, { isAnswering: true }]);
  expect(spaces.readings(30_000)).toEqual([
    { path: '/dead', space, isAnswering: false },
    { path: '/data', space, isAnswering: true },
  ]);

  disk.answer('/dead', { ...answer, bavail: 0 });
  await settled();
  expect(spaces.readings(31_000)[0]).toMatchObject({ space: { availableBytes: 0 }, isAnswering: true });
});

test('no more than two questions are open, so that threads are left for other files', async () => {
  const disk = controlled();
  const spaces = new FileSystemSpaces(['/dead1', '/dead2', '/data'], { questions: disk.questions });
  void spaces.ask(0);
  void spaces.ask(60_000);
  await settled();
  expect(disk.asked).toEqual(['/dead1', '/dead2']);
  expect(spaces.readings(60_000).map(({ isAnswering }) => isAnswering)).toEqual([false, false, false]);

  disk.answer('/dead1');
  await expect.poll(() => disk.asked).toContain('/data');
  disk.answer('/data');
  await expect.poll(() => spaces.readings(60_000)[2]?.space).toEqual(space);
});

test('the data directory is asked about beside two dead mounts, and behind no other path', async () => {
  const disk = controlled();
  const mounts = new FileSystemSpaces(['/dead1', '/dead2', '/data', '/sets'], { questions: disk.questions });
  const own = new FileSystemSpaces(['/data'], { questions: disk.questions, isOwn: true });
  void mounts.ask(0);
  expect([disk.asked, disk.questions.isOpen('/data')]).toEqual([['/dead1', '/dead2'], false]);
  const answered = own.ask(0);
  expect([disk.asked, disk.questions.isOpen('/data')]).toEqual([['/dead1', '/dead2', '/data'], true]);
  disk.answer('/data');
  await answered;
  expect(own.readings(60_000)).toEqual([{ path: '/data', space, isAnswering: true }]);
  expect(mounts.readings(1)[2]).toEqual({ path: '/data', space, isAnswering: true });
  expect(disk.asked).toEqual(['/dead1', '/dead2', '/data']);

  // A data directory that does not answer takes no place of the others either.
  void own.ask(1);
  disk.answer('/dead1');
  await expect.poll(() => disk.asked).toContain('/sets');
});

test('what cannot be read has no value, nor has what answers with nothing', async () => {
  const refused = new FileSystemSpaces(['/data'], {
    questions: asking(() => Promise.reject(new Error('EIO'))),
  });
  await refused.ask(0);
  expect(refused.readings(1)).toEqual([{ path: '/data', space: null, isAnswering: true }]);

  const empty = new FileSystemSpaces(['/data'], {
    questions: asking(() => Promise.resolve({ ...answer, blocks: 0 })),
  });
  await empty.ask(0);
  expect(empty.readings(1)).toMatchObject([{ space: null }]);
});

test('blocks are counted in fragments; a file system may have no fixed number of files', async () => {
  const spaces = new FileSystemSpaces(['/s3'], {
    questions: asking(() => Promise.resolve({ ...answer, bsize: 1_048_576, files: 0, ffree: 0 })),
  });
  await spaces.ask(0);
  expect(spaces.readings(1)[0]?.space).toEqual({ ...space, files: null, availableFiles: null });
});

test('on this machine', async () => {
  const spaces = new FileSystemSpaces([tmpdir(), '/no/such/folder']);
  await spaces.ask(0);
  const { blocks, frsize } = statfsSync(tmpdir());
  expect(spaces.readings(1)).toMatchObject([
    { path: tmpdir(), space: { sizeBytes: blocks * frsize } },
    { path: '/no/such/folder', space: null },
  ]);
});

test('a path has one question open, whoever asks, and whoever asks later gets its answer', async () => {
  const disk = controlled();
  const spaces = [0, 1, 2].map(() => new FileSystemSpaces(['/dead'], { questions: disk.questions }));
  const answered = Promise.all(spaces.map((each) => each.ask(0)));
  expect([disk.asked, disk.questions.isOpen('/dead')]).toEqual([['/dead'], true]);
  disk.answer('/dead');
  await answered;
  expect(spaces.map((each) => each.readings(1)[0]?.space)).toEqual([space, space, space]);
});

test('dead mounts leave threads for other files, however many are asked about and by whom', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-dead-mounts-'));
  const dead = Array.from({ length: 8 }, (_, index) => join(directory, `dead-${index}`));
  execFileSync('mkfifo', dead);
  // To open a pipe that nobody writes to holds a thread of Node, as a question to a dead mount does.
  const opened: string[] = [];
  const questions = asking(async (path) => {
    opened.push(path);
    await (await openFile(path, 'r')).close();
    return answer;
  });
  try {
    const every = [dead, dead.toReversed()].map((paths) => new FileSystemSpaces(paths, { questions }));
    const answered = Promise.all(every.map((each) => each.ask(0)));
    writeFileSync(join(directory, 'live'), 'read');
    expect(await readFile(join(directory, 'live'), 'utf8')).toBe('read');
    expect(opened).toEqual(dead.slice(0, 2));

    // Each is released once somebody writes to it: the others are asked then.
    for (const path of dead) await (await openFile(path, constants.O_WRONLY)).close();
    await answered;
    expect(opened).toEqual(dead);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** Everything that was already decided has happened. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
