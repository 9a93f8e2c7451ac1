/** What a checkpoint may be replaced by, or turn into, while it is looked at: nothing of it is followed or waited for. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkpointDir, writeFiles } from './testing/checkpointDir.ts';
import { torchEntries, zipOf } from './testing/torchFile.ts';
import { verifyCheckpoint } from './verify.ts';

const large = zipOf(torchEntries(Buffer.alloc(12 * 1024 * 1024, 1)));
const small = zipOf(torchEntries(Buffer.alloc(100, 1)));

async function deep(root: string, name: string) {
  return verifyCheckpoint(root, name, { depth: 'deep' });
}

test('links in the way to it, inside of it or in its place', async () => {
  const outside = checkpointDir({ 'step-1/model.pt': small, 'ckpt.pt': small });
  const root = checkpointDir({ 'step-2/model.pt': small });
  symlinkSync(join(outside, 'step-1'), join(root, 'step-1'));
  symlinkSync(join(outside, 'ckpt.pt'), join(root, 'ckpt.pt'));
  symlinkSync(outside, join(root, 'out'));
  for (const name of ['step-1', 'ckpt.pt', 'out/ckpt.pt', 'out/step-1'])
    expect(await deep(root, name)).toMatchObject({ verdict: 'unverified', bytes: 0, files: 0, digest: null });
  const link = join(checkpointDir(), 'root');
  symlinkSync(root, link);
  expect(await deep(link, 'step-2')).toMatchObject({ verdict: 'unverified', bytes: 0 });

  symlinkSync(join(outside, 'ckpt.pt'), join(root, 'step-2/optimizer.pt'));
  expect(await deep(root, 'step-2')).toMatchObject({
    verdict: 'unverified',
    files: 1,
    problem: 'optimizer.pt is a link or not a regular file, and is not opened',
  });
  rmSync(join(root, 'step-2/optimizer.pt'));
  symlinkSync(outside, join(root, 'step-2/logs'));
  expect(await deep(root, 'step-2')).toMatchObject({ verdict: 'verified', files: 1, problem: null });
});

test.each(['', '.', '..', '../x', 'a/../../x', '/etc/passwd', 'a//b'])(
  'the name "%s" leads nowhere',
  async (name) => {
    const root = checkpointDir({ 'a/b': small });
    expect(await deep(root, name)).toMatchObject({
      verdict: 'unverified',
      problem: 'its name leads out of the checkpoint directory',
    });
  },
);

test('pipes, sockets and devices are never opened', async () => {
  const root = checkpointDir({ 'step-1/model.pt': small });
  execFileSync('mkfifo', [join(root, 'ckpt.pt'), join(root, 'step-1/optimizer.pt')]);
  expect(await deep(root, 'ckpt.pt')).toMatchObject({
    verdict: 'unverified',
    problem: 'it is neither a file nor a directory',
  });
  expect(await deep(root, 'step-1')).toMatchObject({
    verdict: 'unverified',
    problem: 'optimizer.pt is a link or not a regular file, and is not opened',
  });
  const server = createServer().listen(join(root, 'last.ckpt'));
  onTestFinished(() => {
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  expect(await deep(root, 'last.ckpt')).toMatchObject({ verdict: 'unverified' });
  expect(await deep('/dev', 'null')).toMatchObject({
    verdict: 'unverified',
    problem: 'it is neither a file nor a directory',
  });
});

test('what is not there, or no directory', async () => {
  const root = checkpointDir({ file: 'x' });
  expect(await deep(root, 'ckpt.pt')).toMatchObject({ verdict: 'unverified', problem: 'it does not exist' });
  expect(await deep(join(root, 'file'), 'ckpt.pt')).toMatchObject({ verdict: 'unverified' });
});

/** Acts while a file is open: at this rate each is for a while, and others have their turn meanwhile. */
async function whileRead(root: string, name: string, path: string, act: () => void) {
  const verifying = verifyCheckpoint(root, name, { depth: 'deep', bytesPerSecondMax: 40 * 1024 * 1024 });
  const timer = setInterval(() => {
    if (!isOpen(join(root, path))) return;
    clearInterval(timer);
    act();
  }, 1);
  return verifying.finally(() => clearInterval(timer));
}

function isOpen(path: string): boolean {
  return readdirSync('/proc/self/fd').some((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === path;
    } catch {
      return false;
    }
  });
}

test.each<[what: string, act: (path: string) => void]>([
  ['grows', (path) => appendFileSync(path, 'more')],
  ['is cut', (path) => writeFileSync(path, '')],
  ['is removed', (path) => rmSync(path)],
  [
    'is replaced',
    (path) => {
      writeFileSync(`${path}.tmp`, large);
      renameSync(`${path}.tmp`, path);
    },
  ],
])('a file that %s while it is read is being written', async (_what, act) => {
  const root = checkpointDir({ 'ckpt.pt': large, 'step-1/a.pt': large });
  const beingWritten = {
    verdict: 'unverified',
    depth: null,
    digest: null,
    problem: 'it is being written: it changed while it was read',
  };
  expect(await whileRead(root, 'ckpt.pt', 'ckpt.pt', () => act(join(root, 'ckpt.pt')))).toMatchObject(
    beingWritten,
  );
  expect(await whileRead(root, 'step-1', 'step-1/a.pt', () => act(join(root, 'step-1/a.pt')))).toMatchObject(
    beingWritten,
  );
});

test('a directory that gets another file while it is read is being written, corrupt as it may look', async () => {
  const root = checkpointDir({
    'step-1/a.pt': large,
    'step-1/b.pt': zipOf(torchEntries(small).map((each) => ({ ...each, crc: 1 }))),
  });
  const found = await whileRead(root, 'step-1', 'step-1/a.pt', () =>
    writeFiles(root, { 'step-1/sub/c.pt': small }),
  );
  expect(found).toMatchObject({ verdict: 'unverified', problem: expect.stringContaining('being written') });
});

test('deeper than any program nests its shards, it is left alone', async () => {
  const root = checkpointDir({ 'step-1/model.pt': small });
  mkdirSync(join(root, 'step-1/a/b/c/d/e/f/g/h'), { recursive: true });
  expect(await deep(root, 'step-1')).toMatchObject({
    verdict: 'unverified',
    problem: 'it has more than 100000 files, or nests them too deeply',
  });
});

test('it stops when it is asked to', async () => {
  const root = checkpointDir({ 'ckpt.pt': large });
  const controller = new AbortController();
  const verifying = verifyCheckpoint(root, 'ckpt.pt', {
    depth: 'deep',
    signal: controller.signal,
    bytesPerSecondMax: 1,
  });
  // At this rate, each chunk takes longer than a timer can wait.
  setTimeout(() => controller.abort(new Error('enough')), 300);
  await expect(verifying).rejects.toThrow('enough');
});
