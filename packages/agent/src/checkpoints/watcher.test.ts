import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { describe, expect, test, vi } from 'vitest';
import { aDirectory, assignmentFor, aTask, indexIn, torchFile, WatchingNode } from './watcherFixture.ts';

describe('a checkpoint that appears', () => {
  test('is verified, reported with all that is known of it, and in the index beside it', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.metrics = { train_loss: 1.5 };
    node.watch(assignmentFor(root));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await node.reports('step_10.pt verified');
    const [message] = node.sent;
    expect(message).toMatchObject({
      kind: 'checkpoint',
      task: aTask,
      shared: false,
      afterStop: false,
      checkpoint: { step: 10, format: 'torch', files: 1, depth: 'quick', metrics: { train_loss: 1.5 } },
    });
    await vi.waitFor(() => {
      expect(indexIn(root)).toMatchObject({
        job: aTask.jobId,
        checkpoints: [{ ...message?.checkpoint, attempt: 1, node: 'a' }],
      });
    });
    expect(node.warnings).toEqual([]);
  });

  /** Of a job that names no directory. */
  const keptByNode = {
    ...assignmentFor('/nowhere'),
    spec: decodeJobSpec('{"name":"test","command":["train"]}'),
  };

  test('in the directory that the node keeps is found there', async () => {
    const node = new WatchingNode();
    const root = join(node.ownDirs, keptByNode.checkpointJobId);
    mkdirSync(root);
    writeFileSync(join(root, 'ckpt.pt'), torchFile());
    node.watch(keptByNode);
    await node.reports('ckpt.pt verified');
  });

  test('in that directory is found also when nothing was in it at first, or for the whole of a short task', async () => {
    const node = new WatchingNode();
    const root = join(node.ownDirs, keptByNode.checkpointJobId);
    mkdirSync(root);
    node.watch(keptByNode);
    writeFileSync(join(root, 'step_1.pt'), torchFile());
    await node.reports('step_1.pt verified');

    const short = new WatchingNode();
    const other = join(short.ownDirs, keptByNode.checkpointJobId);
    mkdirSync(other);
    short.watch(keptByNode);
    writeFileSync(join(other, 'step_2.pt'), torchFile());
    await short.watcher.lastLook(aTask);
    expect(short.messages()).toEqual(['step_2.pt verified']);
  });

  test('cannot be in an empty directory that the node keeps: its last look is over at once', async () => {
    const node = new WatchingNode();
    mkdirSync(join(node.ownDirs, keptByNode.checkpointJobId));
    node.watch(keptByNode);
    await node.watcher.lastLook(aTask);
    expect([node.sent, node.warnings, node.asked]).toEqual([[], [], []]);
    expect(node.problems.filter((problem) => problem !== null)).toEqual([]);
  });

  test('is read to its last byte where the job asks for that', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root, { checkpoint: { verify: 'deep' } }));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await node.reports('step_10.pt verified');
    expect(node.sent[0]?.checkpoint).toMatchObject({
      depth: 'deep',
      digest: expect.stringMatching(/^sha256:/),
    });
  });

  test('is not taken for complete while it is written', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    const whole = torchFile();
    const half = whole.subarray(0, whole.length / 2);
    writeFileSync(join(root, 'step_10.pt'), half);
    await vi.waitFor(() => expect(node.verified).toContain('step_10.pt quick'));
    expect(node.sent).toEqual([]);
    appendFileSync(join(root, 'step_10.pt'), whole.subarray(half.length));
    await node.reports('step_10.pt verified');
    expect(node.sent[0]?.checkpoint.saveDurationMs).toBeGreaterThan(0);
  });

  test('under a name that was there already is another one', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    writeFileSync(join(root, 'ckpt.pt'), torchFile(1));
    await node.reports('ckpt.pt verified');
    writeFileSync(join(root, '.tmp-ckpt.pt'), torchFile(2));
    renameSync(join(root, '.tmp-ckpt.pt'), join(root, 'ckpt.pt'));
    await node.reports('ckpt.pt verified', 'ckpt.pt verified');
    const versions = node.sent.map(({ checkpoint }) => checkpoint.version);
    expect(new Set(versions).size).toBe(2);
    await vi.waitFor(() =>
      expect(indexIn(root).checkpoints.map(({ version }) => version)).toEqual([versions[1]]),
    );
  });

  test('and is broken is reported to be corrupt, once nobody writes to it any more', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    writeFileSync(join(root, 'step_10.pt'), torchFile().subarray(0, 1_000));
    await vi.waitFor(() => expect(node.sent[0]?.checkpoint.verdict).toBe('corrupt'));
    expect(node.sent).toHaveLength(1);
    expect(node.sent[0]?.checkpoint.problem).not.toBeNull();
  });

  test('with its marker before its contents is not called corrupt while they are written', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    const whole = torchFile();
    const states = join(root, 'global_step5', 'mp_rank_00_model_states.pt');
    mkdirSync(join(root, 'global_step5'));
    writeFileSync(states, whole.subarray(0, 1_000));
    writeFileSync(join(root, 'latest'), 'global_step5');
    await vi.waitFor(() => expect(node.verified).toContain('global_step5 quick'));
    appendFileSync(states, whole.subarray(1_000));
    await node.reports('global_step5 verified');
  });

  test('and goes again is reported to be gone', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await node.reports('step_10.pt verified');
    rmSync(join(root, 'step_10.pt'));
    await node.reports('step_10.pt verified', 'step_10.pt gone it no longer exists');
    await vi.waitFor(() => expect(indexIn(root).checkpoints).toEqual([]));
  });

  test('on another rank than 0 is not looked at', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    const task = { ...aTask, nodeRank: 1 };
    node.watch(assignmentFor(root, {}, { task }));
    expect(node.watcher.isWatched(task)).toBe(false);
  });
});

describe('what was there before', () => {
  test('is not verified again by the next agent, and reported again when the coordinator may not know it', async () => {
    const root = aDirectory();
    const startedAtMs = Date.now();
    const first = new WatchingNode();
    first.watch(assignmentFor(root), startedAtMs);
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await first.reports('step_10.pt verified');
    await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
    await first.watcher.close();

    const next = new WatchingNode();
    next.watch(assignmentFor(root), startedAtMs);
    await next.reports('step_10.pt verified');
    expect(next.verified).toEqual([]);
    expect(next.sent[0]?.checkpoint).toEqual(first.sent[0]?.checkpoint);
    expect(next.watcher.messages()).toEqual(next.sent);
    next.watcher.resend();
    await next.reports('step_10.pt verified', 'step_10.pt verified');
  });

  test('of another job in the same directory is none of this one', async () => {
    const root = aDirectory();
    writeFileSync(join(root, 'step_1000.pt'), torchFile());
    const before = new Date(Date.now() - 60_000);
    utimesSync(join(root, 'step_1000.pt'), before, before);
    const node = new WatchingNode();
    node.watch(assignmentFor(root));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await node.reports('step_10.pt verified');
    await vi.waitFor(() => expect(indexIn(root).checkpoints.map(({ name }) => name)).toEqual(['step_10.pt']));
  });

  test('of an earlier attempt that nobody could tell of is reported now', async () => {
    const root = aDirectory();
    const first = new WatchingNode();
    first.watch(assignmentFor(root), Date.now() - 60_000);
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await first.reports('step_10.pt verified');
    await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
    await first.watcher.close();
    // The node dies with its agent; the storage is shared.
    writeFileSync(join(root, 'step_20.pt'), torchFile());
    const other = new WatchingNode();
    other.watch(assignmentFor(root, {}, { task: { ...aTask, attempt: 2 } }), Date.now() + 60_000);
    await other.reports('step_10.pt verified', 'step_20.pt verified');
  });
});

describe('what an earlier agent knew of a task that it recorded to have ended', () => {
  const keep = { checkpoint: { keep_last: 1 } };

  async function anEndedTask(root: string): Promise<WatchingNode> {
    const node = new WatchingNode();
    node.watch(assignmentFor(root));
    for (const step of [1, 2]) {
      writeFileSync(join(root, `step_${step}.pt`), torchFile(step));
      await vi.waitFor(() => expect(node.messages()).toContain(`step_${step}.pt verified`));
    }
    await node.watcher.lastLook(aTask);
    return node;
  }

  test('is known again, as far as it is still there, and nothing is changed beside it', async () => {
    const root = aDirectory();
    await anEndedTask(root);
    rmSync(join(root, 'step_1.pt'));
    writeFileSync(join(root, 'step_3.pt'), torchFile(3));
    const before = readdirSync(root);
    const index = indexIn(root);

    const next = new WatchingNode();
    await next.watcher.recall(assignmentFor(root, keep), Date.now());
    const known = next.watcher.messages().map(({ checkpoint }) => checkpoint.name);
    // The one that nobody has verified is of a later attempt, which sees to it.
    expect(known).toEqual(['step_2.pt']);
    expect(next.verified).toEqual([]);
    expect(readdirSync(root)).toEqual(before);
    expect(indexIn(root)).toEqual(index);
  });

  test('is nothing on another rank than 0', async () => {
    const root = aDirectory();
    await anEndedTask(root);
    const next = new WatchingNode();
    const task = { ...aTask, nodeRank: 1 };
    await next.watcher.recall(assignmentFor(root, {}, { task }), Date.now());
    expect(next.watcher.messages()).toEqual([]);
  });
});

describe('training_complete.marker', () => {
  test('that the program leaves is reported', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    node.watch(assignmentFor(root));
    expect(node.watcher.isTrainingComplete(aTask)).toBe(false);
    writeFileSync(join(root, 'training_complete.marker'), '');
    await vi.waitFor(() => expect(node.complete).toEqual([aTask]));
    expect(node.watcher.isTrainingComplete(aTask)).toBe(true);
  });

  test('of a run before this one does not count', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    writeFileSync(join(root, 'training_complete.marker'), '');
    node.watch(assignmentFor(root), Date.now() + 60_000);
    await node.watcher.lastLook(aTask);
    expect(node.complete).toEqual([]);
  });
});

describe('keep rules', () => {
  test('delete what is older, say so, and never the one that the attempt began from', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    const resume = { name: 'step_1.pt', step: 1 };
    node.watch(assignmentFor(root, { checkpoint: { keep_last: 2 } }, { resume }));
    const names = [1, 2, 3, 4].map((step) => `step_${step}.pt`);
    for (const [index, name] of names.entries()) {
      writeFileSync(join(root, name), torchFile());
      utimesSync(join(root, name), new Date(), new Date(Date.now() + index * 10));
      await vi.waitFor(() => expect(node.messages()).toContain(`${name} verified`));
    }
    await vi.waitFor(() =>
      expect(node.messages().at(-1)).toBe('step_2.pt gone it was deleted by the keep rules of the job'),
    );
    await vi.waitFor(() =>
      expect(indexIn(root).checkpoints.map(({ name }) => name)).toEqual([
        'step_1.pt',
        'step_3.pt',
        'step_4.pt',
      ]),
    );
  });
});
