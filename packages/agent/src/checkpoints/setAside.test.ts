import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { headerOf, safetensorsOf } from '@muster/checkpoints/testing/safetensorsFile';
import type { Resume } from '@muster/common/views';
import { describe, expect, test, vi } from 'vitest';
import { aDirectory, assignmentFor, aTask, indexIn, torchFile, WatchingNode } from './watcherFixture.ts';

/** How a program lays out its checkpoints. */
interface Layout {
  readonly nameOf: (step: number) => string;
  readonly save: (root: string, step: number, seed: number) => void;
}

const layouts: Readonly<Record<string, Layout>> = {
  file: {
    nameOf: (step) => `step_${step}.pt`,
    save: (root, step, seed) => writeFileSync(join(root, `step_${step}.pt`), torchFile(seed)),
  },
  directory: {
    nameOf: (step) => `checkpoint-${step}`,
    save(root, step, seed) {
      const path = join(root, `checkpoint-${step}`);
      mkdirSync(path);
      const data = Buffer.alloc(64, seed);
      writeFileSync(join(path, 'model.safetensors'), safetensorsOf(headerOf({ a: data.length }), data));
      writeFileSync(join(path, 'trainer_state.json'), JSON.stringify({ global_step: step }));
    },
  },
  'directory with a shard of each rank': {
    nameOf: (step) => `global_step${step}`,
    save(root, step, seed) {
      const path = join(root, `global_step${step}`);
      mkdirSync(path);
      for (const rank of [0, 1])
        writeFileSync(
          join(path, `bf16_zero_pp_rank_${rank}_mp_rank_00_optim_states.pt`),
          torchFile(seed + rank),
        );
      writeFileSync(join(path, 'mp_rank_00_model_states.pt'), torchFile(seed));
    },
  },
  'file below a directory': {
    nameOf: (step) => `run/step_${step}.pt`,
    save(root, step, seed) {
      mkdirSync(join(root, 'run'), { recursive: true });
      writeFileSync(join(root, `run/step_${step}.pt`), torchFile(seed));
    },
  },
};

const byName = ([a]: readonly unknown[], [b]: readonly unknown[]) => String(a).localeCompare(String(b));

const attemptOf = (attempt: number) => ({ ...aTask, attempt });

/** An attempt that saves these steps, and ends when all of them are verified. */
async function ran(
  root: string,
  layout: Layout,
  number: number,
  resume: Resume | null,
  steps: readonly number[],
  spec = {},
): Promise<WatchingNode> {
  const node = new WatchingNode();
  const assignment = assignmentFor(root, spec, { task: attemptOf(number), resume });
  expect(await node.watcher.prepare(assignment)).toBeNull();
  await node.watcher.starting(assignment);
  node.watch(assignment);
  for (const step of steps) layout.save(root, step, step + 10 * number);
  await vi.waitFor(() => {
    const { checkpoints } = indexIn(root);
    const saved = checkpoints.filter(({ attempt: by, verdict }) => by === number && verdict === 'verified');
    expect(saved).toHaveLength(steps.length);
  }, 20_000);
  await node.watcher.lastLook(assignment.task);
  return node;
}

const namesIn = (root: string) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.endsWith('checkpoints_index.json') && !/model|optim|trainer|^run$/.test(name))
    .sort();

describe.each(Object.entries(layouts))('a %s of a later step than the attempt resumes from', (_, layout) => {
  const { nameOf } = layout;

  test('is set aside before the program runs, kept, listed, and reported with its attempt', async () => {
    const root = aDirectory();
    await ran(root, layout, 1, null, [5, 6, 7]);
    const node = await ran(root, layout, 2, { name: nameOf(5), step: 5 }, [6]);
    expect(namesIn(root)).toEqual(
      [nameOf(5), nameOf(6), `${nameOf(6)}.attempt-1`, `${nameOf(7)}.attempt-1`].sort(),
    );
    const listed = indexIn(root).checkpoints.map(({ name, attempt: by, step }) => [name, by, step]);
    expect(listed.toSorted(byName)).toEqual(
      [
        [nameOf(5), 1, 5],
        [nameOf(6), 2, 6],
        [`${nameOf(6)}.attempt-1`, 1, 6],
        [`${nameOf(7)}.attempt-1`, 1, 7],
      ].toSorted(byName),
    );
    const reported = node.sent.find(({ checkpoint }) => checkpoint.name === `${nameOf(7)}.attempt-1`);
    expect(reported).toMatchObject({
      by: aTask.jobId,
      attempt: 1,
      checkpoint: { verdict: 'verified', step: 7 },
    });
    expect(node.messages().filter((message) => message.includes('gone'))).toEqual([]);
  });

  test('may be resumed from by its new name, and what that attempt overtakes is set aside in turn', async () => {
    const root = aDirectory();
    await ran(root, layout, 1, null, [5, 6]);
    await ran(root, layout, 2, { name: nameOf(5), step: 5 }, [6, 7]);
    await ran(root, layout, 3, { name: `${nameOf(6)}.attempt-1`, step: 6 }, [7]);
    expect(namesIn(root)).toEqual(
      [nameOf(5), nameOf(6), nameOf(7), `${nameOf(6)}.attempt-1`, `${nameOf(7)}.attempt-2`].sort(),
    );
  });
});

const files = layouts['file'] as Layout;

test('what an attempt left without a word is set aside with the rest, and verified then', async () => {
  const root = aDirectory();
  await ran(root, files, 1, null, [5, 6]);
  files.save(root, 8, 1);
  const node = await ran(root, files, 2, { name: 'step_5.pt', step: 5 }, [6]);
  expect(namesIn(root)).toEqual(['step_5.pt', 'step_6.pt', 'step_6.pt.attempt-1', 'step_8.pt.attempt-1']);
  expect(node.messages()).toContain('step_8.pt.attempt-1 verified');
  expect(node.sent.find(({ checkpoint }) => checkpoint.name === 'step_8.pt.attempt-1')).toMatchObject({
    found: true,
  });
});

test('the checkpoint that is resumed from stays, where a program saves in place under one name', async () => {
  const root = aDirectory();
  const inPlace: Layout = {
    nameOf: () => 'last.pt',
    save: (at, step) => writeFileSync(join(at, 'last.pt'), torchFile(step)),
  };
  await ran(root, inPlace, 1, null, [7]);
  await ran(root, inPlace, 2, { name: 'last.pt', step: 7 }, []);
  await ran(root, inPlace, 3, { name: 'last.pt', step: null }, [9]);
  expect(namesIn(root)).toEqual(['last.pt']);
});

test('what stood there before the chain, and is newer, stays', async () => {
  const root = aDirectory();
  files.save(root, 900, 1);
  await ran(root, files, 1, null, [5, 6]);
  await ran(root, files, 2, { name: 'step_5.pt', step: 5 }, [6]);
  expect(namesIn(root)).toEqual(['step_5.pt', 'step_6.pt', 'step_6.pt.attempt-1', 'step_900.pt']);
});

test('a start from scratch sets aside what is verified, and leaves what only its program can read', async () => {
  const root = aDirectory();
  await ran(root, files, 1, null, [5]);
  writeFileSync(join(root, 'step_6.bin'), 'a format of its own');
  await ran(root, files, 2, null, [1]);
  expect(namesIn(root)).toEqual(['step_1.pt', 'step_5.pt.attempt-1', 'step_6.bin']);
});

test('a start that is repeated changes nothing, and one that was cut off in the middle is completed', async () => {
  const root = aDirectory();
  await ran(root, files, 1, null, [5, 6, 7]);
  const node = new WatchingNode();
  const assignment = assignmentFor(root, {}, { task: attemptOf(2), resume: { name: 'step_5.pt', step: 5 } });
  await node.watcher.prepare(assignment);
  // The agent was killed after one rename, and before the index was written.
  renameSync(join(root, 'step_7.pt'), join(root, 'step_7.pt.attempt-1'));
  await node.watcher.starting(assignment);
  const index = readFileSync(join(root, 'checkpoints_index.json'), 'utf8');
  await node.watcher.starting(assignment);
  expect(namesIn(root)).toEqual(['step_5.pt', 'step_6.pt.attempt-1', 'step_7.pt.attempt-1']);
  expect(readFileSync(join(root, 'checkpoints_index.json'), 'utf8')).toBe(index);
  expect(indexIn(root).checkpoints.map(({ name, attempt: by }) => [name, by])).toEqual([
    ['step_5.pt', 1],
    ['step_6.pt.attempt-1', 1],
    ['step_7.pt.attempt-1', 1],
  ]);
});

test('an order to start that comes too late renames nothing of the attempt that runs by then', async () => {
  const root = aDirectory();
  await ran(root, files, 1, null, [5, 6]);
  const late = new WatchingNode();
  const order = assignmentFor(root, {}, { task: attemptOf(2), resume: { name: 'step_5.pt', step: 5 } });
  await late.watcher.prepare(order);
  await ran(root, files, 3, { name: 'step_6.pt', step: 6 }, [7]);
  await late.watcher.starting(order);
  expect(namesIn(root)).toEqual(['step_5.pt', 'step_6.pt', 'step_7.pt']);
});

test('keep rules give up what was set aside once a higher step is verified', async () => {
  const root = aDirectory();
  await ran(root, files, 1, null, [5, 6, 8]);
  const keep = { checkpoint: { keep_last: 1 } };
  const resume = { name: 'step_5.pt', step: 5 };
  await ran(root, files, 2, resume, [7], keep);
  expect(namesIn(root)).toEqual(['step_5.pt', 'step_7.pt', 'step_8.pt.attempt-1']);
  const node = new WatchingNode();
  node.watch(assignmentFor(root, keep, { task: attemptOf(2), resume }));
  files.save(root, 9, 3);
  await vi.waitFor(() => expect(namesIn(root)).toEqual(['step_5.pt', 'step_9.pt']), 10_000);
});

test('what a program could not load is read a second time under the name that it was given', async () => {
  const root = aDirectory();
  await ran(root, files, 1, null, [5, 6]);
  const version = indexIn(root).checkpoints.find(({ name }) => name === 'step_6.pt')?.version ?? '';
  const doubted = [{ name: 'step_6.pt', version }];
  const resume = { name: 'step_5.pt', step: 5 };
  const assignment = assignmentFor(root, {}, { task: attemptOf(2), resume, doubted });
  const node = new WatchingNode();
  await node.watcher.prepare(assignment);
  await node.watcher.starting(assignment);
  node.watch(assignment);
  await vi.waitFor(() => expect(node.sent).toHaveLength(2));
  // The first look counts as the first reading; the second follows half a minute later.
  await vi.waitFor(() => {
    node.aheadMs += 31_000;
    expect(node.verified).toContain('step_6.pt.attempt-1 deep');
  }, 20_000);
});
