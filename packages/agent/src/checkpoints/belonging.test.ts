import { mkdirSync, readdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { describe, expect, test, vi } from 'vitest';
import { aDirectory, assignmentFor, aTask, indexIn, torchFile, WatchingNode } from './watcherFixture.ts';

/** Times that programs and wrong clocks give to files: years ago, years ahead, before 1970 was over, now. */
const times = [
  '1970-01-01T00:00:01Z',
  '2001-02-03T04:05:06Z',
  new Date().toISOString(),
  '2099-12-31T23:59:59Z',
];

/** Sets the time of each file by turns, beginning with another one for each `seed`. */
function timed(root: string, seed: number, ...names: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    const time = new Date(times[(index + seed) % times.length] ?? 0);
    utimesSync(join(root, name), time, time);
  }
}

/** Writes it as programs do: beside, with its time, and then in its place. */
function save(root: string, name: string, seed: number, content = torchFile(seed)): void {
  writeFileSync(join(root, '.tmp-saved'), content);
  timed(root, seed, '.tmp-saved');
  renameSync(join(root, '.tmp-saved'), join(root, name));
}

function inIndex(root: string): readonly string[] {
  return indexIn(root).checkpoints.map(({ name }) => name);
}

const second = { task: { ...aTask, attempt: 2 } };

describe.each([0, 1, 2, 3])('whatever the times of files are (%i)', (seed) => {
  test('what stood in the directory when the chain began is none of the job, in all its attempts', async () => {
    const root = aDirectory();
    for (const step of [1, 2, 3, 4]) writeFileSync(join(root, `step_${step}.pt`), torchFile(step));
    timed(root, seed, 'step_1.pt', 'step_2.pt', 'step_3.pt', 'step_4.pt');
    const first = new WatchingNode();
    await first.began(assignmentFor(root));
    save(root, 'step_5.pt', seed);
    // The name of one that stood there, written again by the job.
    save(root, 'step_2.pt', seed + 1, torchFile(9));
    await vi.waitFor(() => expect(inIndex(root)).toEqual(['step_2.pt', 'step_5.pt']));
    await first.watcher.lastLook(aTask);

    const next = new WatchingNode();
    await next.began(assignmentFor(root, {}, second));
    save(root, 'step_6.pt', seed);
    await vi.waitFor(() => expect(inIndex(root)).toEqual(['step_2.pt', 'step_5.pt', 'step_6.pt']));
    expect(next.messages().map((message) => message.split(' ')[0])).not.toContain('step_4.pt');
    expect(indexIn(root).before?.map(({ name }) => name)).toEqual(['step_1.pt', 'step_3.pt', 'step_4.pt']);
  });

  test('what an attempt has left without a word is found by the next one, on another node', async () => {
    const root = aDirectory();
    const first = new WatchingNode();
    await first.began(assignmentFor(root));
    save(root, 'step_1.pt', seed);
    await vi.waitFor(() => expect(inIndex(root)).toEqual(['step_1.pt']));
    await first.watcher.close();
    // The node is dead, its program was not quite.
    save(root, 'step_2.pt', seed + 1);
    save(root, 'step_3.pt', seed + 2);

    const other = new WatchingNode();
    await other.began(assignmentFor(root, {}, second));
    save(root, 'step_4.pt', seed + 3);
    await vi.waitFor(() => expect(inIndex(root)).toHaveLength(4));
    const sent = other.sent.map(({ checkpoint, by, attempt, found }) => [
      checkpoint.name,
      by,
      attempt,
      found,
    ]);
    expect(sent.toSorted(([a], [b]) => String(a).localeCompare(String(b)))).toEqual([
      ['step_1.pt', aTask.jobId, 1, undefined],
      ['step_2.pt', undefined, undefined, true],
      ['step_3.pt', undefined, undefined, true],
      ['step_4.pt', aTask.jobId, 2, undefined],
    ]);
    // The agent is started again in the middle of the attempt, and knows as much.
    await other.watcher.close();
    const again = new WatchingNode();
    again.watch(assignmentFor(root, {}, second), Date.now() + 86_400_000);
    await vi.waitFor(() => expect(again.sent).toHaveLength(4));
    expect(again.sent.filter(({ found }) => found === true)).toHaveLength(2);
  });

  test('a marker of a complete training counts if it was written in the attempt', async () => {
    const root = aDirectory();
    const marker = 'training_complete.marker';
    writeFileSync(join(root, marker), '');
    timed(root, seed, marker);
    const node = new WatchingNode();
    await node.began(assignmentFor(root));
    save(root, 'step_1.pt', seed);
    await node.reports('step_1.pt verified');
    expect(node.complete).toEqual([]);
    save(root, marker, seed, Buffer.alloc(0));
    await vi.waitFor(() => expect(node.complete).toEqual([aTask]));
  });
});

describe('a directory', () => {
  test('that is missing when the attempt begins holds nothing but what the attempt saves', async () => {
    const root = join(aDirectory(), 'later');
    const node = new WatchingNode();
    await node.began(assignmentFor(root));
    mkdirSync(root);
    save(root, 'step_1.pt', 1);
    await node.reports('step_1.pt verified');
  });

  test('of the node keeps no empty index', async () => {
    const node = new WatchingNode();
    const assignment = assignmentFor('/nowhere', {}, {});
    const { spec } = assignment;
    const root = join(node.ownDirs, aTask.jobId);
    mkdirSync(root);
    const own = { ...assignment, spec: { ...spec, checkpoint: { ...spec.checkpoint, dir: null } } };
    await node.watcher.prepare(own);
    expect(readdirSync(root)).toEqual([]);
  });
});

describe('another job in the directory', () => {
  const other = 'job_0000000000ff' as JobId;
  const anotherJob = (root: string, lineage: readonly JobId[] = []) =>
    assignmentFor(root, {}, { task: { ...aTask, jobId: other }, checkpointJobId: other, lineage });

  test('is not kept away by what stood there before the first one, which has saved nothing', async () => {
    const root = aDirectory();
    writeFileSync(join(root, 'step_1.pt'), torchFile());
    const node = new WatchingNode();
    expect(await node.watcher.prepare(assignmentFor(root))).toBeNull();
    expect(await node.watcher.prepare(anotherJob(root))).toBeNull();
  });

  test('that began anew there leaves the checkpoints to the first one, which may continue', async () => {
    const root = aDirectory();
    const first = new WatchingNode();
    await first.began(assignmentFor(root));
    save(root, 'step_1.pt', 1);
    await first.reports('step_1.pt verified');
    await first.watcher.lastLook(aTask);
    const node = new WatchingNode();
    expect(await node.watcher.prepare(anotherJob(root))).toMatchObject({ kind: 'checkpoint_conflict' });
    expect(await node.watcher.prepare(anotherJob(root, [aTask.jobId]))).toBeNull();
    expect(indexIn(root)).toMatchObject({ job: other, before: [{ name: 'step_1.pt', job: aTask.jobId }] });
    // A third job is refused as before, and the first one finds its own.
    const third = 'job_0000000000ee' as JobId;
    const foreign = assignmentFor(root, {}, { task: { ...aTask, jobId: third }, checkpointJobId: third });
    expect(await node.watcher.prepare(foreign)).toMatchObject({
      message: expect.stringContaining(`checkpoints of ${aTask.jobId}`),
    });
    expect(await node.watcher.prepare(assignmentFor(root, {}, second))).toBeNull();
    expect(indexIn(root)).toMatchObject({ job: aTask.jobId, before: [], found: [{ name: 'step_1.pt' }] });
  });
});

test('an index of the release before, which has no list, is completed once by times', async () => {
  const root = aDirectory();
  for (const step of [1, 2, 3]) writeFileSync(join(root, `step_${step}.pt`), torchFile(step));
  const long = new Date('2001-01-01');
  utimesSync(join(root, 'step_1.pt'), long, long);
  utimesSync(join(root, 'step_2.pt'), long, long);
  const first = new WatchingNode();
  await first.began(assignmentFor(root));
  const { before: _, found: __, marker: ___, ...index } = indexIn(root);
  const facts = {
    name: 'step_2.pt',
    version: 'v',
    step: 2,
    format: 'torch',
    bytes: 1,
    files: 1,
    savedAtMs: 1,
    saveDurationMs: null,
    metrics: {},
    digest: null,
    verdict: 'verified',
    depth: 'quick',
    problem: null,
    reread: false,
    by: aTask.jobId,
    attempt: 1,
    node: 'a',
  };
  const old = { ...index, sinceMs: long.getTime() + 1_000, checkpoints: [facts] };
  writeFileSync(join(root, 'checkpoints_index.json'), JSON.stringify(old));

  const node = new WatchingNode();
  await node.watcher.prepare(assignmentFor(root, {}, second));
  // The second one is named by the index, and the third is newer than the chain.
  expect(indexIn(root).before?.map(({ name }) => name)).toEqual(['step_1.pt']);
});

test('an index that the job has written over names no attempt to the coordinator that is none', async () => {
  const root = aDirectory();
  const first = new WatchingNode();
  await first.began(assignmentFor(root));
  for (const step of [1, 2, 3]) save(root, `step_${step}.pt`, step);
  await vi.waitFor(() => expect(inIndex(root)).toHaveLength(3));
  await first.watcher.close();
  const index = indexIn(root);
  const lies = [{ by: 'x'.repeat(4_000) }, { attempt: -1 }, { attempt: 1e12 }];
  const checkpoints = index.checkpoints.map((facts, at) => ({ ...facts, ...lies[at] }));
  writeFileSync(join(root, 'checkpoints_index.json'), JSON.stringify({ ...index, checkpoints }));

  const node = new WatchingNode();
  await node.began(assignmentFor(root, {}, second));
  await vi.waitFor(() => expect(node.sent).toHaveLength(3));
  expect(node.sent.map(({ by, attempt, found }) => [by, attempt, found])).toEqual(
    [[], [], []].map(() => [undefined, undefined, undefined]),
  );
});
