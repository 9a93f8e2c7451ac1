import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import { headerOf, safetensorsOf } from '@muster/checkpoints/testing/safetensorsFile';
import type { CheckpointLook, LookOrder } from '@muster/common/checkpoints';
import type { JobId } from '@muster/common/ids';
import { describe, expect, test, vi } from 'vitest';
import type { Assignment } from '../taskFacts/assignment.ts';
import { aDirectory, assignmentFor, aTask, indexIn, torchFile, WatchingNode } from './watcherFixture.ts';

/** Two tensors of 96 KiB, all of whose bytes are the step. */
function tensors(step: number): Buffer {
  const data = Buffer.alloc(192 * 1024, step);
  return safetensorsOf(headerOf({ a: data.length / 2, b: data.length / 2 }), data);
}

/** How a program lays out its checkpoints. */
interface Layout {
  readonly nameOf: (step: number) => string;
  readonly save: (root: string, step: number) => void;
  /** The file that changes. */
  readonly file: string;
}

const layouts: Readonly<Record<string, Layout>> = {
  file: {
    nameOf: (step) => `step_${step}.safetensors`,
    save: (root, step) => writeFileSync(join(root, `step_${step}.safetensors`), tensors(step)),
    file: '',
  },
  torch: {
    nameOf: (step) => `step_${step}.pt`,
    save: (root, step) => writeFileSync(join(root, `step_${step}.pt`), torchFile(step, 200_000)),
    file: '',
  },
  directory: {
    nameOf: (step) => `checkpoint-${step}`,
    save(root, step) {
      mkdirSync(join(root, `checkpoint-${step}`));
      writeFileSync(join(root, `checkpoint-${step}/model.safetensors`), tensors(step));
      writeFileSync(
        join(root, `checkpoint-${step}/trainer_state.json`),
        JSON.stringify({ global_step: step }),
      );
    },
    file: '/model.safetensors',
  },
  shards: {
    nameOf: (step) => `global_step${step}`,
    save(root, step) {
      mkdirSync(join(root, `global_step${step}`));
      for (const rank of [0, 1]) {
        const name = `bf16_zero_pp_rank_${rank}_mp_rank_00_optim_states.pt`;
        writeFileSync(join(root, `global_step${step}/${name}`), torchFile(step + rank, 100_000));
      }
      writeFileSync(join(root, `global_step${step}/mp_rank_00_model_states.pt`), torchFile(step, 100_000));
    },
    file: '/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt',
  },
};

const changes: Readonly<Record<string, (path: string) => void>> = {
  'is truncated': (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
  'is emptied': (path) => truncateSync(path, 0),
  'has garbage of the same size': (path) => writeFileSync(path, Buffer.alloc(statSync(path).size, 0xa5)),
  'is replaced by a rename with garbage': (path) => {
    writeFileSync(`${path}.tmp`, Buffer.alloc(statSync(path).size, 0x5a));
    renameSync(`${path}.tmp`, path);
  },
  'has garbage of the same size and the same times': (path) => {
    const { size, atime, mtime } = statSync(path);
    writeFileSync(path, Buffer.alloc(size, 0xa5));
    utimesSync(path, atime, mtime);
  },
  'is gone': (path) => rmSync(path),
};

/** An attempt saves, its agent verifies all of it, and its node is lost. */
async function savedBy(layout: Layout, steps: readonly number[], root = aDirectory()): Promise<string> {
  const node = new WatchingNode();
  node.watch(assignmentFor(root, { checkpoint: { verify: 'quick' } }));
  for (const step of steps) layout.save(root, step);
  await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(steps.length), 20_000);
  await node.watcher.close();
  return root;
}

const nextTask = { ...aTask, attempt: 2 };

/** What the coordinator was told of them. */
function orderOf(root: string, names: readonly string[], stepMax: number | null = null): LookOrder {
  const { checkpoints } = indexIn(root);
  const candidates = names.flatMap((name) => {
    const {
      version,
      fingerprint = null,
      bytes,
      files,
    } = checkpoints.find((each) => each.name === name) ?? {
      version: 'unknown',
      bytes: 0,
      files: 0,
    };
    return { name, version, fingerprint, bytes, files };
  });
  return { candidates, stepMax };
}

async function lookOf(
  root: string,
  look: LookOrder,
  changed: Partial<Assignment> = {},
  node = new WatchingNode(),
): Promise<CheckpointLook> {
  const [first] = look.candidates;
  const resume = first === undefined ? null : { name: first.name, step: null };
  const assignment = assignmentFor(root, {}, { task: nextTask, resume, look, ...changed });
  expect(await node.watcher.prepare(assignment)).toBeNull();
  const found = node.watcher.lookOf(nextTask);
  if (found === null) throw new Error('it has not looked');
  return found;
}

const verdicts = ({ found }: CheckpointLook) =>
  found.map(({ checkpoint: { name, verdict } }) => `${name} ${verdict}`);

describe.each(Object.entries(layouts))('a checkpoint that is a %s', (_, layout) => {
  test('is confirmed without being read, and newer ones are offered, the newest first', async () => {
    const root = await savedBy(layout, [1, 2, 3, 4]);
    const node = new WatchingNode();
    const look = await lookOf(root, orderOf(root, [layout.nameOf(2), layout.nameOf(1)]), {}, node);
    expect(verdicts(look)).toEqual([2, 4, 3].map((step) => `${layout.nameOf(step)} verified`));
    expect(look.found.map(({ by, attempt }) => [by, attempt])).toEqual([2, 4, 3].map(() => [aTask.jobId, 1]));
    expect(node.asked).toEqual([]);
  });

  test.each(Object.entries(changes))(
    'and %s is not used, and the one before is confirmed',
    async (_how, change) => {
      const root = await savedBy(layout, [1, 2]);
      change(join(root, layout.nameOf(2) + layout.file));
      const look = await lookOf(root, orderOf(root, [layout.nameOf(2), layout.nameOf(1)]));
      expect(verdicts(look)[0]).toMatch(/ (corrupt|gone|unverified)$/);
      expect(verdicts(look).slice(1)).toEqual([`${layout.nameOf(1)} verified`]);
    },
  );

  test.each(Object.entries(changes))('and %s is not offered, and the one before is', async (_how, change) => {
    const root = await savedBy(layout, [1, 2, 3]);
    change(join(root, layout.nameOf(3) + layout.file));
    const look = await lookOf(root, orderOf(root, [layout.nameOf(1)]));
    expect(verdicts(look)).toEqual([`${layout.nameOf(1)} verified`, `${layout.nameOf(2)} verified`]);
  });

  test('that was copied to other inodes is read to its last byte, and used', async () => {
    const saved = await savedBy(layout, [1, 2]);
    const root = aDirectory();
    cpSync(saved, root, { recursive: true });
    const node = new WatchingNode();
    const look = await lookOf(root, orderOf(root, [layout.nameOf(2)]), {}, node);
    expect(verdicts(look)).toEqual([`${layout.nameOf(2)} verified`]);
    expect(node.verified).toEqual([`${layout.nameOf(2)} deep`]);
    const { candidates } = await scanCheckpoints(root, { pattern: null });
    const there = candidates.find(({ name }) => name === layout.nameOf(2));
    expect(look.found[0]?.checkpoint.version).toBe(there?.version);
  });

  test('that no agent has verified is read to its last byte, and offered', async () => {
    const root = await savedBy(layout, [1]);
    layout.save(root, 2);
    const node = new WatchingNode();
    const look = await lookOf(root, orderOf(root, [layout.nameOf(1)]), {}, node);
    expect(verdicts(look)).toEqual([1, 2].map((step) => `${layout.nameOf(step)} verified`));
    expect(node.verified).toEqual([`${layout.nameOf(2)} deep`]);
    // The next look, and the watch of the attempt, know it.
    expect(indexIn(root).checkpoints.map(({ name, attempt }) => [name, attempt])).toContainEqual([
      layout.nameOf(2),
      1,
    ]);
  });
});

describe('a program that saves in place under one name', () => {
  const name = 'last.safetensors';
  const save = (root: string, step: number) => {
    const path = join(root, name);
    // Without O_TRUNC, as a program does that maps its file.
    writeFileSync(path, tensors(step), { flag: readdirSync(root).includes(name) ? 'r+' : 'w' });
  };

  async function savedTwice(): Promise<string> {
    const root = aDirectory();
    const node = new WatchingNode();
    node.watch(assignmentFor(root));
    save(root, 1);
    await node.reports(`${name} verified`);
    save(root, 2);
    await vi.waitFor(() => expect(node.messages()).toHaveLength(2), 10_000);
    await vi.waitFor(() =>
      expect(indexIn(root).checkpoints[0]?.version).toBe(node.sent[1]?.checkpoint.version),
    );
    await node.watcher.close();
    return root;
  }

  test.each([
    [
      'without emptying it',
      (path: string) => writeFileSync(path, tensors(3).subarray(0, 100_000), { flag: 'r+' }),
    ],
    ['after emptying it', (path: string) => writeFileSync(path, tensors(3).subarray(0, 100_000))],
  ])('and dies in the middle of a save %s leaves nothing to resume from', async (_, write) => {
    const root = await savedTwice();
    const order = orderOf(root, [name]);
    write(join(root, name));
    const look = await lookOf(root, order);
    expect(verdicts(look)).toEqual([expect.stringMatching(/ (corrupt|unverified)$/)]);
  });

  test('and dies after a save has its newest version read, and resumes from it', async () => {
    const root = await savedTwice();
    const order = orderOf(root, [name]);
    save(root, 3);
    const look = await lookOf(root, order);
    expect(verdicts(look)).toEqual([`${name} verified`]);
    expect(look.found[0]?.checkpoint.version).not.toBe(order.candidates[0]?.version);
  });
});

describe('a look', () => {
  const layout = layouts['file'] as Layout;

  test('finds what a chain has saved that the coordinator knows nothing of', async () => {
    const root = await savedBy(layout, [1, 2]);
    expect(verdicts(await lookOf(root, orderOf(root, [])))).toEqual(
      [2, 1].map((step) => `${layout.nameOf(step)} verified`),
    );
  });

  test('offers nothing of another job, nor what stood there before the chain', async () => {
    const root = aDirectory();
    layout.save(root, 9);
    const before = new Date(Date.now() - 60_000);
    utimesSync(join(root, layout.nameOf(9)), before, before);
    await savedBy(layout, [1], root);
    expect(verdicts(await lookOf(root, orderOf(root, [])))).toEqual([`${layout.nameOf(1)} verified`]);
    const other = { checkpointJobId: 'job_000000000009' as JobId, lineage: [aTask.jobId] };
    expect(verdicts(await lookOf(root, orderOf(root, []), other))).toEqual([]);
  });

  test('offers no later step than its user wants', async () => {
    const root = await savedBy(layout, [1, 2, 3, 4]);
    const look = await lookOf(root, orderOf(root, [layout.nameOf(1)], 3));
    expect(verdicts(look)).toEqual([1, 3, 2].map((step) => `${layout.nameOf(step)} verified`));
  });

  test('says that the directory holds nothing', async () => {
    const root = aDirectory();
    expect(await lookOf(root, orderOf(await savedBy(layout, [1]), [layout.nameOf(1)]))).toMatchObject({
      problem: 'holds no checkpoint',
      found: [{ checkpoint: { verdict: 'gone' } }],
    });
    rmSync(root, { recursive: true });
    expect((await lookOf(root, orderOf(await savedBy(layout, [1]), [layout.nameOf(1)]))).problem).toBe(
      'does not exist',
    );
  });

  test('that takes too long has a limit and a word, and what was not read is not used', async () => {
    const root = await savedBy(layout, [1, 2]);
    const order = orderOf(root, [layout.nameOf(2), layout.nameOf(1)]);
    writeFileSync(join(root, layout.nameOf(2)), tensors(7));
    const node = new WatchingNode();
    node.mayVerify = () => new Promise(() => {});
    const words: string[] = [];
    const resume = { name: layout.nameOf(2), step: 2 };
    const spec = { prepare_timeout: '1s' };
    const assignment = assignmentFor(root, spec, { task: nextTask, resume, look: order });
    await node.watcher.prepare(assignment, (text) => words.push(text), new AbortController().signal);
    const look = node.watcher.lookOf(nextTask);
    expect(words).toEqual([
      expect.stringMatching(/^reading the checkpoint step_2.*changed since it was verified$/),
    ]);
    expect(look?.found.map(({ checkpoint: { verdict } }) => verdict)).toEqual(['unverified', 'verified']);
    expect(look?.found[0]?.checkpoint.problem).toMatch('was not read within');
  });

  test('of a checkpoint that a user has named by its path asks only whether it is there', async () => {
    const root = aDirectory();
    const outside = aDirectory();
    writeFileSync(join(outside, 'weights.bin'), 'anything');
    const name = join(outside, 'weights.bin');
    const order = {
      candidates: [{ name, version: '', fingerprint: null, bytes: 0, files: 0 }],
      stepMax: null,
    };
    expect(verdicts(await lookOf(root, order))).toEqual([`${name} verified`]);
  });

  test('of an evaluation takes no other version for the one that is evaluated', async () => {
    const saved = await savedBy(layout, [1]);
    const path = join(saved, layout.nameOf(1));
    const [known] = orderOf(saved, [layout.nameOf(1)]).candidates;
    const look: LookOrder = {
      candidates: known === undefined ? [] : [{ ...known, name: path }],
      stepMax: null,
    };
    const spec = { labels: { 'muster.evaluates': 'job_0123456789ab' } };
    const assignment = assignmentFor(aDirectory(), spec, { resume: { name: path, step: 1 }, look });
    const node = new WatchingNode();
    expect(await node.watcher.prepare(assignment)).toBeNull();
    writeFileSync(path, readFileSync(path));
    expect(await node.watcher.prepare(assignment)).toMatchObject({ kind: 'checkpoint_conflict' });
  });
});
