import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { secondReadingMs } from '@muster/common/checkpoints';
import { describe, expect, test, vi } from 'vitest';
import { FirstReadings } from './secondReadings.ts';
import {
  aDirectory,
  assignmentFor,
  aTask,
  corruptIn,
  indexIn,
  torchFile,
  WatchingNode,
} from './watcherFixture.ts';

const cutOff = 'corrupt it was cut off: the directory that PyTorch writes at the end is missing';

/** One that was found corrupt, in the attempt that saved it or, in a process of its own, in one before. */
async function aCorruptOne(node: WatchingNode, attempt = 1): Promise<string> {
  const root = aDirectory();
  node.watch(assignmentFor(root, {}, { task: { ...aTask, attempt } }));
  writeFileSync(join(root, 'step_10.pt'), torchFile().subarray(0, 1_000));
  await node.reports(`step_10.pt ${cutOff}`);
  return root;
}

/** As many verifications as there were may go by, and none of them is a second one. */
async function someLooks(node: WatchingNode, root: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    writeFileSync(join(root, name), torchFile());
    await vi.waitFor(() => expect(node.messages()).toContain(`${name} verified`));
  }
}

describe('a checkpoint that was found corrupt', () => {
  test('is read again after 30 s and not before, and reported and written down once more', async () => {
    const node = new WatchingNode();
    const root = await aCorruptOne(node);
    node.aheadMs = secondReadingMs - 20_000;
    await someLooks(node, root, ['step_20.pt', 'step_30.pt']);
    expect(node.sent.map(({ checkpoint }) => checkpoint.reread)).not.toContain(true);
    node.aheadMs = secondReadingMs;
    await vi.waitFor(() =>
      expect(node.sent.at(-1)?.checkpoint).toMatchObject({ name: 'step_10.pt', reread: true }),
    );
    expect(node.messages().at(-1)).toBe(`step_10.pt ${cutOff}`);
    await vi.waitFor(() =>
      expect(indexIn(root).checkpoints[0]).toMatchObject({
        name: 'step_10.pt',
        verdict: 'corrupt',
        reread: true,
      }),
    );
    const readings = node.verified.filter((each) => each.startsWith('step_10.pt')).length;
    // It keeps its name while the job runs, and is not read a third time.
    node.aheadMs += 10 * secondReadingMs;
    await someLooks(node, root, ['step_40.pt', 'step_50.pt']);
    expect(readdirSync(root)).toContain('step_10.pt');
    expect(node.sent.filter(({ checkpoint }) => checkpoint.name === 'step_10.pt')).toHaveLength(2);
    expect(node.verified.filter((each) => each.startsWith('step_10.pt'))).toHaveLength(readings);
  });

  test('by a mistake of the storage is verified after all', async () => {
    const node = new WatchingNode();
    let isStorageGood = false;
    node.seen = (found) =>
      isStorageGood || found.verdict !== 'verified'
        ? found
        : { ...found, verdict: 'corrupt', problem: 'it is damaged' };
    const root = aDirectory();
    node.watch(assignmentFor(root));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await node.reports('step_10.pt corrupt it is damaged');
    isStorageGood = true;
    node.aheadMs = secondReadingMs;
    await node.reports('step_10.pt corrupt it is damaged', 'step_10.pt verified');
    expect(node.sent.at(-1)?.checkpoint).toMatchObject({ reread: true, problem: null });
    await vi.waitFor(() =>
      expect(indexIn(root).checkpoints[0]).toMatchObject({ verdict: 'verified', reread: true }),
    );
  });

  test('is read again as much later where the storage could not be read', async () => {
    const node = new WatchingNode();
    const root = await aCorruptOne(node);
    node.seen = (found) => ({ ...found, verdict: 'unverified', problem: 'it cannot be read: EIO' });
    const before = node.verified.length;
    node.aheadMs = secondReadingMs;
    await vi.waitFor(() => expect(node.verified.length).toBeGreaterThan(before));
    node.seen = (found) => found;
    await someLooks(node, root, ['step_20.pt', 'step_30.pt']);
    expect(node.sent.map(({ checkpoint }) => checkpoint.reread)).not.toContain(true);
    node.aheadMs = 2 * secondReadingMs;
    await vi.waitFor(() =>
      expect(node.sent.at(-1)?.checkpoint).toMatchObject({ verdict: 'corrupt', reread: true }),
    );
  });

  test('in an attempt that was over too soon is read again in the next, at once when the time has come', async () => {
    const node = new WatchingNode();
    const root = await aCorruptOne(node);
    await node.watcher.lastLook(aTask);
    node.watcher.forget(aTask);
    node.aheadMs = secondReadingMs;
    node.watch(assignmentFor(root, {}, { task: { ...aTask, attempt: 2 } }));
    await vi.waitFor(() => expect(node.sent.at(-1)?.checkpoint.reread).toBe(true));
  });

  test('before the agent was started anew waits as long again', async () => {
    const before = new WatchingNode();
    const root = await aCorruptOne(before);
    await before.watcher.lastLook(aTask);
    const isLongAgo = vi.spyOn(FirstReadings.prototype, 'isLongAgo');
    const node = new WatchingNode();
    node.aheadMs = 100 * secondReadingMs;
    node.watch(assignmentFor(root, {}, { task: { ...aTask, attempt: 2 } }));
    await someLooks(node, root, ['step_20.pt', 'step_30.pt']);
    expect(node.sent.map(({ checkpoint }) => checkpoint.reread)).not.toContain(true);
    // Its own time begins with its first look that has nothing newer to read.
    await vi.waitFor(() => expect(isLongAgo).toHaveBeenCalled());
    node.aheadMs += secondReadingMs;
    await vi.waitFor(() => expect(node.sent.at(-1)?.checkpoint.reread).toBe(true));
  });

  test('by a program, and good at a quick look, is read to its last byte', async () => {
    const first = new WatchingNode();
    const root = aDirectory();
    first.watch(assignmentFor(root));
    const damaged = torchFile();
    damaged.writeUInt8(9, damaged.indexOf(Buffer.alloc(64, 1)) + 1_000);
    writeFileSync(join(root, 'step_10.pt'), damaged);
    await first.reports('step_10.pt verified');
    await first.watcher.lastLook(aTask);
    const node = new WatchingNode();
    const doubted = await corruptIn(root, 'step_10.pt');
    node.watch(assignmentFor(root, {}, { task: { ...aTask, attempt: 2 }, doubted }));
    await node.reports('step_10.pt verified');
    node.aheadMs = secondReadingMs;
    await vi.waitFor(() =>
      expect(node.sent.at(-1)?.checkpoint).toMatchObject({ verdict: 'corrupt', depth: 'deep', reread: true }),
    );
  });
});

test('of more than a thousand the oldest are forgotten, and wait anew', () => {
  const readings = new FirstReadings();
  const read = (version: number) => ({ root: '/r', name: 'a', version: String(version) });
  for (let version = 0; version <= 1_000; version++) readings.note(read(version), 0);
  expect(readings.isLongAgo(read(1_000), secondReadingMs)).toBe(true);
  expect(readings.isLongAgo(read(0), secondReadingMs)).toBe(false);
  expect(readings.isLongAgo(read(0), 2 * secondReadingMs)).toBe(true);
});
