import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { describe, expect, test, vi } from 'vitest';
import {
  aDirectory,
  assignmentFor,
  aTask,
  corruptIn,
  indexIn,
  torchFile,
  WatchingNode,
} from './watcherFixture.ts';

describe('a corrupt checkpoint', () => {
  test('is set aside under another name, kept, and noted in the index', async () => {
    const root = aDirectory();
    const first = new WatchingNode();
    first.watch(assignmentFor(root));
    writeFileSync(join(root, 'step_10.pt'), torchFile().subarray(0, 1_000));
    await vi.waitFor(() => expect(first.sent[0]?.checkpoint.verdict).toBe('corrupt'));
    await first.watcher.lastLook(aTask);
    const problem = first.sent[0]?.checkpoint.problem;

    const node = new WatchingNode();
    const quarantine = await corruptIn(root, 'step_10.pt');
    expect(await node.watcher.prepare(assignmentFor(root, {}, { quarantine }))).toBeNull();
    expect(readdirSync(root).sort()).toEqual(['checkpoints_index.json', 'step_10.pt.corrupt']);
    expect(readFileSync(join(root, 'step_10.pt.corrupt'))).toHaveLength(1_000);
    expect(indexIn(root)).toMatchObject({
      checkpoints: [],
      quarantined: [{ name: 'step_10.pt.corrupt', was: 'step_10.pt', problem }],
    });
    // The one that is made in its place is another one.
    node.watch(assignmentFor(root, {}, { task: { ...aTask, attempt: 2 } }));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await node.reports('step_10.pt verified');
    await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
    expect(indexIn(root).quarantined).toHaveLength(1);
    expect(first.warnings.concat(node.warnings)).toEqual([]);
  });

  test('does not take the place of an earlier one, and being asked again changes nothing', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    for (let time = 0; time < 2; time++) {
      mkdirSync(join(root, 'checkpoint-5'));
      const quarantine = await corruptIn(root, 'checkpoint-5', 'gone.pt');
      await node.watcher.prepare(assignmentFor(root, {}, { quarantine }));
      await node.watcher.prepare(assignmentFor(root, {}, { quarantine }));
    }
    expect(readdirSync(root).sort()).toEqual([
      'checkpoint-5.2.corrupt',
      'checkpoint-5.corrupt',
      'checkpoints_index.json',
    ]);
    expect(node.warnings).toEqual([]);
  });

  test('whose name meanwhile holds another one is none any more', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    writeFileSync(join(root, 'ckpt.pt'), torchFile().subarray(0, 1_000));
    const quarantine = await corruptIn(root, 'ckpt.pt');
    writeFileSync(join(root, 'ckpt.pt'), torchFile().subarray(0, 1_001));
    await node.watcher.prepare(assignmentFor(root, {}, { quarantine }));
    expect(readdirSync(root)).toEqual(['checkpoints_index.json', 'ckpt.pt']);
  });

  test('that is a link, or lies behind one, is left', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    const outside = aDirectory();
    writeFileSync(join(outside, 'step_1.pt'), 'x');
    const quarantine = await corruptIn(outside, 'step_1.pt', 'run/step_1.pt', '../outside');
    symlinkSync(join(outside, 'step_1.pt'), join(root, 'step_1.pt'));
    symlinkSync(outside, join(root, 'run'));
    await node.watcher.prepare(assignmentFor(root, {}, { quarantine }));
    expect(readdirSync(root).sort()).toEqual(['checkpoints_index.json', 'run', 'step_1.pt']);
    expect(readdirSync(outside)).toEqual(['step_1.pt']);
  });
});

describe('the checkpoint to begin from', () => {
  const resume = { name: 'step_10.pt', step: 10 };

  test('has to be there', async () => {
    const node = new WatchingNode();
    const root = aDirectory();
    expect(await node.watcher.prepare(assignmentFor(root, {}, { resume }))).toEqual({
      kind: 'corrupt_checkpoint',
      message: `the checkpoint step_10.pt from which this attempt resumes is not in ${root} on this node`,
    });
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    expect(await node.watcher.prepare(assignmentFor(root, {}, { resume }))).toBeNull();
  });

  test('is the business of rank 0', async () => {
    const node = new WatchingNode();
    const task = { ...aTask, nodeRank: 1 };
    expect(await node.watcher.prepare(assignmentFor('/nowhere', {}, { resume, task }))).toBeNull();
  });

  test('inside of a container cannot be seen', async () => {
    const node = new WatchingNode();
    const assignment = assignmentFor('/inside', { image: 'pytorch' }, { resume });
    expect(await node.watcher.prepare(assignment)).toBeNull();
    node.watch(assignment);
    expect(node.warnings).toEqual([expect.stringMatching('lies inside the container')]);
  });
});

describe('a directory with checkpoints of another job', () => {
  const other = { jobId: 'job_00000000other' as JobId, attempt: 1, nodeRank: 0 };

  async function savedByAnother(): Promise<string> {
    const root = aDirectory();
    const node = new WatchingNode();
    node.watch(assignmentFor(root, {}, { task: other, checkpointJobId: aTask.jobId }));
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    await vi.waitFor(() => expect(indexIn(root).checkpoints).toHaveLength(1));
    return root;
  }

  const otherTask = { jobId: 'job_000000000001' as JobId, attempt: 1, nodeRank: 0 };

  test('is refused, with the two ways out', async () => {
    const root = await savedByAnother();
    const problem = await new WatchingNode().watcher.prepare(assignmentFor(root, {}, { task: otherTask }));
    expect(problem).toEqual({
      kind: 'checkpoint_conflict',
      message:
        `${root} holds checkpoints of ${other.jobId} (1, one of them step_10.pt), which this job would write over. ` +
        'Give it a checkpoint.dir of its own, or continue from them: ' +
        `muster submit --resume-from ${other.jobId}`,
    });
  });

  test.each([
    ['goes on with them', { checkpointJobId: aTask.jobId }],
    ['begins anew in its place', { lineage: [aTask.jobId] }],
    ['has saved there before', { resume: { name: 'step_10.pt', step: 10 } }],
  ])('is open to one that %s', async (_, changes) => {
    const root = await savedByAnother();
    const assignment = assignmentFor(root, {}, { task: otherTask, ...changes });
    expect(await new WatchingNode().watcher.prepare(assignment)).toBeNull();
  });

  test('is open once they are gone', async () => {
    const root = await savedByAnother();
    rmSync(join(root, 'step_10.pt'));
    const assignment = assignmentFor(root, {}, { task: otherTask });
    expect(await new WatchingNode().watcher.prepare(assignment)).toBeNull();
  });

  test('is refused where they have names that this job does not look for', async () => {
    const root = await savedByAnother();
    const spec = { checkpoint: { pattern: 'run-{step}.bin' } };
    const problem = await new WatchingNode().watcher.prepare(assignmentFor(root, spec, { task: otherTask }));
    expect(problem?.kind).toBe('checkpoint_conflict');
  });
});
