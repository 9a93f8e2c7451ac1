import { appendFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { KnownCheckpoints } from './knownCheckpoints.ts';
import { aDirectory, assignmentFor, aTask, torchFile, WatchingNode } from './watcherFixture.ts';

/** A task that has saved once. */
async function aRunningTask(spec: Readonly<Record<string, unknown>> = {}) {
  const node = new WatchingNode();
  const root = aDirectory();
  node.watch(assignmentFor(root, spec));
  writeFileSync(join(root, 'ckpt.pt'), torchFile(1));
  await node.reports('ckpt.pt verified');
  return { node, root, save: (name: string, seed = 2) => writeFileSync(join(root, name), torchFile(seed)) };
}

describe('a checkpoint counts as saved after the stop', () => {
  test('when it is a new one', async () => {
    const { node, save } = await aRunningTask();
    await node.watcher.stopping(aTask);
    save('step_11.pt');
    await node.reports('ckpt.pt verified', 'step_11.pt verified after the stop');
  });

  test('when a known one was written over', async () => {
    const { node, save } = await aRunningTask();
    await node.watcher.stopping(aTask);
    save('ckpt.pt');
    await node.reports('ckpt.pt verified', 'ckpt.pt verified after the stop');
  });

  test('when a known one was replaced', async () => {
    const { node, root, save } = await aRunningTask();
    await node.watcher.stopping(aTask);
    save('.tmp-ckpt.pt');
    renameSync(join(root, '.tmp-ckpt.pt'), join(root, 'ckpt.pt'));
    await node.reports('ckpt.pt verified', 'ckpt.pt verified after the stop');
  });

  test('when it has the inode of a file that is gone', async () => {
    const { node, root, save } = await aRunningTask();
    writeFileSync(join(root, 'scratch'), 'x');
    const { ino } = statSync(join(root, 'scratch'));
    await node.watcher.stopping(aTask);
    rmSync(join(root, 'scratch'));
    // Many file systems give it to the next file; where this one does not, there is nothing to mistake.
    save('.tmp-1');
    for (let number = 2; number <= 100 && statSync(join(root, `.tmp-${number - 1}`)).ino !== ino; number++) {
      save(`.tmp-${number}`);
    }
    const last = readdirSync(root).find((name) => statSync(join(root, name)).ino === ino) ?? '.tmp-1';
    renameSync(join(root, last), join(root, 'step_11.pt'));
    await node.reports('ckpt.pt verified', 'step_11.pt verified after the stop');
  });

  test('not when the signal may not have come, until the stop is tried again', async () => {
    const { node, save } = await aRunningTask();
    await node.watcher.stopping(aTask);
    node.watcher.notStopped(aTask);
    save('step_11.pt');
    await node.reports('ckpt.pt verified', 'step_11.pt verified');
    await node.watcher.stopping(aTask);
    save('step_12.pt', 3);
    await node.reports('ckpt.pt verified', 'step_11.pt verified', 'step_12.pt verified after the stop');
  });

  test('and is reported to be so again on the next connection', async () => {
    const { node, save } = await aRunningTask();
    await node.watcher.stopping(aTask);
    save('step_11.pt');
    await vi.waitFor(() => expect(node.sent).toHaveLength(2));
    node.sent.length = 0;
    node.watcher.resend();
    await node.reports('ckpt.pt verified', 'step_11.pt verified after the stop');
  });
});

describe('a checkpoint was begun before the stop', () => {
  test('when half of it was there', async () => {
    const { node, root, save } = await aRunningTask();
    const whole = torchFile();
    writeFileSync(join(root, 'step_10.pt'), whole.subarray(0, 1_000));
    await node.watcher.stopping(aTask);
    appendFileSync(join(root, 'step_10.pt'), whole.subarray(1_000));
    await node.reports('ckpt.pt verified', 'step_10.pt verified');
    // The one that the signal was for.
    save('step_11.pt');
    await node.reports('ckpt.pt verified', 'step_10.pt verified', 'step_11.pt verified after the stop');
  });

  test('when it was there under a temporary name', async () => {
    const { node, root, save } = await aRunningTask();
    save('.tmp-ckpt.pt');
    await node.watcher.stopping(aTask);
    renameSync(join(root, '.tmp-ckpt.pt'), join(root, 'ckpt.pt'));
    await node.reports('ckpt.pt verified', 'ckpt.pt verified');
  });

  test('when its directory was there under a temporary name', async () => {
    const { node, root } = await aRunningTask();
    mkdirSync(join(root, 'tmp-checkpoint-20'));
    await node.watcher.stopping(aTask);
    writeFileSync(join(root, 'tmp-checkpoint-20', 'pytorch_model.bin'), torchFile());
    writeFileSync(join(root, 'tmp-checkpoint-20', 'trainer_state.json'), '{"global_step": 20}');
    renameSync(join(root, 'tmp-checkpoint-20'), join(root, 'checkpoint-20'));
    await node.reports('ckpt.pt verified', 'checkpoint-20 verified');
  });
});

test('while a task is stopped, its newest checkpoint comes before one that takes long to read', async () => {
  const { node, save } = await aRunningTask({ checkpoint: { verify: 'deep' } });
  node.mayVerify = ({ name, depth }, signal) =>
    name === 'step_10.pt' && depth === 'deep'
      ? new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
        )
      : Promise.resolve();
  save('step_10.pt');
  await vi.waitFor(() => expect(node.verified).toContain('step_10.pt quick'));
  await node.watcher.stopping(aTask);
  save('step_11.pt');
  await node.reports('ckpt.pt verified', 'step_11.pt verified after the stop');
});

test('a checkpoint that was written over is not read to its end', async () => {
  const { node, save } = await aRunningTask();
  node.mayVerify = (_, signal) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    );
  save('step_10.pt');
  await vi.waitFor(() => expect(node.asked).toContain('step_10.pt quick'));
  node.mayVerify = () => Promise.resolve();
  save('step_10.pt', 3);
  await node.reports('ckpt.pt verified', 'step_10.pt verified');
});

describe('the end of a task', () => {
  test('is not reported before its last checkpoint is', async () => {
    const { node, save } = await aRunningTask();
    save('step_12.pt');
    await node.watcher.lastLook(aTask);
    expect(node.messages()).toEqual(['ckpt.pt verified', 'step_12.pt verified']);
  });

  test('leaves what was half written where it is, and calls it nothing better than corrupt', async () => {
    const { node, root } = await aRunningTask();
    writeFileSync(join(root, 'step_12.pt'), torchFile().subarray(0, 1_000));
    await node.watcher.lastLook(aTask);
    expect(node.sent.at(-1)?.checkpoint).toMatchObject({ name: 'step_12.pt', verdict: 'corrupt' });
  });

  test('of a gang says nothing bad of what other nodes may still be writing', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root, {}, { nodeCount: 2 }));
    writeFileSync(join(root, 'step_12.pt'), torchFile().subarray(0, 1_000));
    await node.watcher.lastLook(aTask);
    expect(node.sent).toEqual([]);
  });

  test('does not wait for ever for what cannot be read: that is reported to be unverified, and read by the next', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    node.mayVerify = () => new Promise(() => {});
    // Two seconds for each of them would be too long, too.
    const names = Array.from({ length: 12 }, (_, index) => `step_${index + 10}.pt`);
    for (const name of names) writeFileSync(join(root, name), torchFile());
    await node.watcher.lastLook(aTask);
    expect(node.sent.map(({ checkpoint }) => checkpoint.verdict)).toEqual(names.map(() => 'unverified'));
    const next = new WatchingNode();
    next.watch(assignmentFor(root));
    await vi.waitFor(() =>
      expect(next.messages().toSorted()).toEqual(names.map((name) => `${name} verified`)),
    );
  });

  test('does not wait for ever for an index that cannot be written', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    writeFileSync(join(root, 'step_12.pt'), torchFile());
    const limit = new AbortController();
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    const timeouts = vi
      .spyOn(AbortSignal, 'timeout')
      .mockImplementation((ms) => (ms > 10_000 ? limit.signal : timeout(ms)));
    const accepts = vi.spyOn(KnownCheckpoints.prototype, 'accept').mockImplementation(() => {
      limit.abort(new Error('the storage hangs'));
      return new Promise(() => {});
    });
    onTestFinished(() => {
      timeouts.mockRestore();
      accepts.mockRestore();
    });
    await node.watcher.recall(assignmentFor(root), Date.now());
    await node.watcher.lastLook(aTask);
    expect(node.warnings.join()).toContain('could not examine its checkpoints: the storage hangs');
  });
});
