/** Directories as no program should leave them: real ones, on real file systems. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { JobId, TaskRef } from '@muster/common/ids';
import { expect, test, vi } from 'vitest';
import { paceAfter } from './pacer.ts';
import {
  aDirectory,
  assignmentFor,
  aTask,
  corruptIn,
  indexIn,
  mountTmpfs,
  torchFile,
  WatchingNode,
} from './watcherFixture.ts';

test('a directory that is a symbolic link is named, and nothing behind it is read, written or deleted', async () => {
  const node = new WatchingNode();
  const elsewhere = aDirectory();
  writeFileSync(join(elsewhere, 'step_10.pt'), torchFile());
  const link = join(aDirectory(), 'checkpoints');
  symlinkSync(elsewhere, link);
  const quarantine = await corruptIn(elsewhere, 'step_10.pt');
  expect(await node.watcher.prepare(assignmentFor(link, {}, { quarantine }))).toBeNull();
  node.watch(assignmentFor(link, { checkpoint: { keep_last: 1 } }));
  await vi.waitFor(() => expect(node.warnings.at(-1)).toMatch('the checkpoint directory is a symbolic link'));
  expect(node.warnings.at(-1)).toMatch(link);
  await node.watcher.lastLook(aTask);
  expect(node.sent).toEqual([]);
  expect(readdirSync(elsewhere)).toEqual(['step_10.pt']);
});

test('a directory that vanishes and comes back is named once, and what it holds is not reported to be gone', async () => {
  const node = new WatchingNode();
  const parent = aDirectory();
  const root = join(parent, 'checkpoints');
  mkdirSync(root);
  node.watch(assignmentFor(root));
  writeFileSync(join(root, 'step_10.pt'), torchFile());
  await node.reports('step_10.pt verified');
  await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
  renameSync(root, join(parent, 'away'));
  await vi.waitFor(() => expect(node.warnings.at(-1)).toMatch('the checkpoint directory does not exist'));
  renameSync(join(parent, 'away'), root);
  writeFileSync(join(root, 'step_20.pt'), torchFile());
  await node.reports('step_10.pt verified', 'step_20.pt verified');
  expect(node.warnings).toHaveLength(1);
});

test('a directory that is made late is nothing to complain of', async () => {
  const node = new WatchingNode();
  const root = join(aDirectory(), 'checkpoints');
  node.watch(assignmentFor(root));
  mkdirSync(root);
  writeFileSync(join(root, 'step_10.pt'), torchFile());
  await node.reports('step_10.pt verified');
  expect(node.warnings).toEqual([]);
});

test('among 100,000 files the checkpoint is found, and looking for it takes a small part of the time', async () => {
  const node = new WatchingNode();
  const root = aDirectory();
  // Where a file costs a tenth of what it costs on a disk.
  mountTmpfs(root, 'size=64m,nr_inodes=200k');
  execFileSync('/bin/sh', ['-c', 'seq 1 99999 | xargs -n 2000 touch'], { cwd: root });
  node.watch(assignmentFor(root));
  writeFileSync(join(root, 'step_10.pt'), torchFile());
  await node.reports('step_10.pt verified');
  expect(paceAfter([800], false).shortestMs).toBeGreaterThanOrEqual(50 * 800);
  // One more than is looked at: said, and nothing of what was not seen counts as gone.
  for (const name of ['a', 'b', 'c']) writeFileSync(join(root, name), '');
  await node.watcher.lastLook(aTask);
  expect(node.warnings.at(-1)).toMatch('the checkpoint directory holds more than 100000 entries');
  expect(node.messages().filter((messages) => messages.includes('no longer exists'))).toEqual([]);
});

test('a look that took long by chance, or a slow directory, does not keep the next one away for long', () => {
  expect(paceAfter([10, 30_000, 9_000], false)).toEqual({ longestMs: 1_000, shortestMs: 500 });
  expect(paceAfter([3_000, 2_000], false).shortestMs).toBe(60_000);
  expect(paceAfter([40_000], false).longestMs).toBe(160_000);
  expect(paceAfter([10], true)).toEqual({ longestMs: 100, shortestMs: 40 });
});

test('on a full disk the index is missing, which is named once, and all the rest goes on', async () => {
  const node = new WatchingNode();
  const root = aDirectory();
  mountTmpfs(root, 'size=256k');
  node.watch(assignmentFor(root));
  writeFileSync(join(root, 'step_10.pt'), torchFile(1, 100_000));
  await node.reports('step_10.pt verified');
  await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
  const filled = () => writeFileSync(join(root, 'filler'), Buffer.alloc(1024 * 1024));
  writeFileSync(join(root, 'step_20.pt'), torchFile(1, 20_000));
  await node.reports('step_10.pt verified', 'step_20.pt verified');
  await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(2));
  expect(filled).toThrow('ENOSPC');
  rmSync(join(root, 'step_20.pt'));
  expect(filled).toThrow('ENOSPC');
  await vi.waitFor(() => expect(node.messages().at(-1)).toMatch('step_20.pt gone it no longer exists'));
  await vi.waitFor(() =>
    expect(node.warnings.at(-1)).toMatch('the index of its checkpoints cannot be written: ENOSPC'),
  );
  // What was written before is still whole, and no rest of the new one takes space.
  expect(indexIn(root).checkpoints).toHaveLength(2);
  expect(readdirSync(root).sort()).toEqual(['checkpoints_index.json', 'filler', 'step_10.pt']);
  rmSync(join(root, 'step_10.pt'));
  expect(filled).toThrow('ENOSPC');
  await vi.waitFor(() => expect(node.messages().at(-1)).toMatch('step_10.pt gone it no longer exists'));
  expect(node.warnings).toHaveLength(1);
});

test('on a read-only disk checkpoints are read and reported, and nothing is deleted', async () => {
  const node = new WatchingNode();
  const root = aDirectory();
  mountTmpfs(root, 'size=1m');
  expect(await node.watcher.prepare(assignmentFor(root))).toBeNull();
  for (const step of [1, 2]) writeFileSync(join(root, `step_${step}.pt`), torchFile());
  execFileSync('mount', ['-o', 'remount,ro', root]);
  const quarantine = await corruptIn(root, 'step_1.pt');
  expect(await node.watcher.prepare(assignmentFor(root, {}, { quarantine }))).toBeNull();
  expect(node.warnings.at(-1)).toMatch('the corrupt checkpoint step_1.pt could not be set aside: EROFS');
  node.watch(assignmentFor(root, { checkpoint: { keep_last: 1 } }));
  await vi.waitFor(() =>
    expect(node.messages().filter((messages) => messages.endsWith('verified'))).toHaveLength(2),
  );
  await vi.waitFor(() =>
    expect(node.warnings.join('\n')).toMatch(
      'the index of its checkpoints cannot be written: EROFS: read-only file system; they are',
    ),
  );
  await vi.waitFor(() =>
    expect(node.warnings.join('\n')).toMatch('the checkpoint step_1.pt could not be deleted: EROFS'),
  );
  await node.watcher.lastLook(aTask);
  expect(node.warnings).toHaveLength(3);
  expect(readdirSync(root).sort()).toEqual(['checkpoints_index.json', 'step_1.pt', 'step_2.pt']);
});

test('an index that is a link is replaced, and not written through', async () => {
  const node = new WatchingNode();
  const root = aDirectory();
  const secret = join(aDirectory(), 'secret');
  writeFileSync(secret, 'untouched');
  symlinkSync(secret, join(root, 'checkpoints_index.json'));
  symlinkSync(secret, join(root, '.checkpoints_index.json.tmp'));
  node.watch(assignmentFor(root));
  writeFileSync(join(root, 'step_10.pt'), torchFile());
  await node.reports('step_10.pt verified');
  await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
  expect(readFileSync(secret, 'utf8')).toBe('untouched');
});

test.each([
  ['no JSON', '{'],
  ['of another form', '{"version":1,"checkpoints":{}}'],
  ['with names that lead elsewhere', JSON.stringify(anIndexOf('../outside.pt'))],
])('an index %s is of no consequence', async (_, text) => {
  const node = new WatchingNode();
  const parent = aDirectory();
  const root = join(parent, 'checkpoints');
  mkdirSync(root);
  writeFileSync(join(parent, 'outside.pt'), torchFile());
  writeFileSync(join(root, 'checkpoints_index.json'), text);
  node.watch(assignmentFor(root, { checkpoint: { keep_last: 1 } }));
  writeFileSync(join(root, 'step_10.pt'), torchFile());
  await vi.waitFor(() => expect(node.messages()).toContain('step_10.pt verified'));
  await node.watcher.lastLook(aTask);
  expect(existsSync(join(parent, 'outside.pt'))).toBe(true);
});

function anIndexOf(name: string) {
  const facts = { name, version: 'v', step: 1, format: 'torch', bytes: 1, files: 1, savedAtMs: 1 };
  const rest = {
    saveDurationMs: null,
    metrics: {},
    digest: null,
    verdict: 'verified',
    depth: 'quick',
    problem: null,
  };
  return {
    version: 1,
    job: aTask.jobId,
    sinceMs: 0,
    quarantined: [],
    checkpoints: [{ ...facts, ...rest, attempt: 1, node: 'a' }],
  };
}

test('what is known is reported in a directory that holds more than is looked at, too', async () => {
  const root = aDirectory();
  const first = new WatchingNode();
  first.watch(assignmentFor(root));
  writeFileSync(join(root, 'step_5000.pt'), torchFile());
  await first.reports('step_5000.pt verified');
  await first.watcher.lastLook(aTask);
  for (let step = 1; step <= 1_000; step++) writeFileSync(join(root, `step_${step}.pt`), 'x');
  const next = new WatchingNode();
  next.mayVerify = () => new Promise(() => {});
  next.watch(assignmentFor(root));
  await next.reports('step_5000.pt verified');
});

test('of two jobs that save into one directory at the same time, neither deletes anything', async () => {
  const root = aDirectory();
  const rules = { checkpoint: { keep_last: 1 } };
  const other: TaskRef = { ...aTask, jobId: 'job_ba9876543210' as JobId };
  const [first, second] = [new WatchingNode(), new WatchingNode()];
  first.watch(assignmentFor(root, rules));
  second.watch(assignmentFor(root, rules, { task: other }));
  // One after the other: what both find at the same instant, both may write down.
  second.mayVerify = ({ name }) =>
    vi.waitFor(() => expect(indexIn(root).checkpoints.map((each) => each.name)).toContain(name));
  const names = ['a_step_1.pt', 'b_step_1.pt', 'a_step_2.pt', 'b_step_2.pt'];
  for (const name of names) {
    writeFileSync(join(root, name), torchFile());
    for (const node of [first, second]) {
      await vi.waitFor(() => expect(node.messages()).toContain(`${name} verified`));
    }
    await vi.waitFor(() => expect(indexIn(root).job).toBe(other.jobId));
  }
  await Promise.all([first.watcher.lastLook(aTask), second.watcher.lastLook(other)]);
  expect(readdirSync(root).toSorted()).toEqual([...names, 'checkpoints_index.json'].toSorted());
  expect(first.warnings).toContainEqual(expect.stringContaining(`${other.jobId} saves its checkpoints here`));
  expect(second.warnings).toContainEqual(
    expect.stringContaining(`${aTask.jobId} saves its checkpoints here`),
  );
});
